"""One archive that grows: evidence.tar.gz. Each addition is a gzip member of its own, so what a
killed process wrote before stays readable, by tar and by Python alike."""
import gzip
import io
import os
import tarfile

ARCHIVE_BYTES = 14 << 20  # everything that comes back from a machine must stay small
FILE_BYTES = 4 << 20      # of one file, head and tail
FINE_BYTES = 128 << 10    # of one file of a row that went well
CORE_BYTES = 128 << 20    # of a core dump, before it is packed


def content(path, most):
    """The file, or its head and tail around a line that says what is missing."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size <= most:
            return file.read(most)
        head = file.read(most // 2)
        file.seek(size - most // 2)
        return head + f"\n... {size - most} bytes left out ...\n".encode() + file.read(most // 2)


def packed(members):
    """A gzip member with these (name, bytes), without the end mark of a tar file."""
    plain = io.BytesIO()
    for name, data in members:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        plain.write(info.tobuf(tarfile.GNU_FORMAT))
        plain.write(data + b"\0" * (-len(data) % tarfile.BLOCKSIZE))
    return gzip.compress(plain.getvalue(), 6)


def files(folder):
    """The regular files below the folder, cores last."""
    found = []
    for where, _, names in os.walk(folder):
        found += [os.path.join(where, name) for name in names]
    found = [path for path in found if os.path.isfile(path) and not os.path.islink(path)]
    return sorted(found, key=lambda path: (is_core(path), path))


def is_core(path):
    return os.path.basename(path).startswith("core")


class Archive:
    """path: the archive. Adding to it never raises: what cannot be read is left out."""

    def __init__(self, path):
        self.path = path

    def add_text(self, name, text):
        self.append([(name, text.encode(errors="replace"))])

    def add_folder(self, name, folder, everything):
        """The files of a row: all there is of one that went wrong, heads of one that went well."""
        for path in files(folder):
            core = is_core(path)
            if core and (not everything or os.path.getsize(path) > CORE_BYTES):
                continue
            most = CORE_BYTES if core else FILE_BYTES if everything else FINE_BYTES
            try:
                self.append([(f"{name}/{os.path.relpath(path, folder)}", content(path, most))])
            except OSError:
                pass

    def add_archive(self, path):
        """Adds all that another archive has."""
        try:
            self.append_packed(path.read_bytes())
        except OSError:
            pass

    def append(self, members):
        self.append_packed(packed(members))

    def append_packed(self, data):
        try:
            size = os.path.getsize(self.path) if os.path.exists(self.path) else 0
            if size + len(data) > ARCHIVE_BYTES:
                return
            with open(self.path, "ab") as file:
                file.write(data)
        except OSError:
            pass
