"""The mutants of a C file: small changes of meaning, each in one place of one function.

Places come from Clang's syntax tree (Debian's python3-clang). What a macro expands to is left
alone, and so are calls that only print.
"""
import dataclasses
import hashlib
import re

from clang.cindex import CursorKind, Index, TranslationUnit, TypeKind

# The mutations of a binary operator, and their names. An operand that is dropped is another one.
SWAPS = {"<": ("compare", "<="), "<=": ("compare", "<"), ">": ("compare", ">="),
         ">=": ("compare", ">"), "==": ("compare", "!="), "!=": ("compare", "=="),
         "&&": ("logic", "||"), "||": ("logic", "&&"), "+": ("arithmetic", "-"),
         "-": ("arithmetic", "+"), "*": ("arithmetic", "/"), "/": ("arithmetic", "*"),
         "%": ("arithmetic", "/"), "&": ("bits", "|"), "|": ("bits", "&"), "^": ("bits", "|"),
         "<<": ("bits", ">>"), ">>": ("bits", "<<"), "+=": ("arithmetic", "-="),
         "-=": ("arithmetic", "+="), "|=": ("bits", "&="), "&=": ("bits", "|=")}
COMPARED = ("<", "<=", ">", ">=")
NEGATED = ("<", "<=", ">", ">=", "==", "!=", "&&", "||")

# Calls that only print or help a reader: without them the program does the same.
PRINTS = re.compile(r"spw_log\w*|f?printf|fputs|perror|spw_stats_say\w*|_mm_pause")
LOCKS = re.compile(r"\w*(lock|unlock|mutex|cond_|barrier_|lease_)\w*")

LEAVES = (CursorKind.RETURN_STMT, CursorKind.GOTO_STMT, CursorKind.BREAK_STMT,
          CursorKind.CONTINUE_STMT)
SIMPLE = (TypeKind.BOOL, TypeKind.CHAR_S, TypeKind.UCHAR, TypeKind.SHORT, TypeKind.USHORT,
          TypeKind.INT, TypeKind.UINT, TypeKind.LONG, TypeKind.ULONG, TypeKind.LONGLONG,
          TypeKind.ULONGLONG)


@dataclasses.dataclass(frozen=True)
class Mutant:
    """Bytes [start, end) of a file, and what stands there instead."""
    id: str        # file:function:operator:hash, the same wherever the function stands
    file: str      # relative to the tree
    line: int
    start: int
    end: int
    old: str
    new: str

    @property
    def operator(self):
        return self.id.split(":")[2]

    def apply(self, content):
        """The bytes of the file with the mutation."""
        assert content[self.start:self.end].decode() == self.old
        return content[:self.start] + self.new.encode() + content[self.end:]

    def change(self):
        """The mutation in one line."""
        return f"{squeeze(self.old)} -> {squeeze(self.new)}"


def squeeze(text):
    return " ".join(text.split())


class File:
    """One pass over the functions that a file defines."""

    def __init__(self, root, name, arguments):
        self.name = name
        self.path = str(root / name)
        self.content = (root / name).read_bytes()
        unit = Index.create().parse(self.path, args=arguments,
                                    options=TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
        errors = [str(d) for d in unit.diagnostics if d.severity >= d.Error]
        if errors:
            raise ValueError("\n".join(errors))
        self.found = []
        self.times = {}
        self.choices = set()  # where comparisons begin whose two sides may be equal
        self.function = self.result = None
        here = [cursor for cursor in unit.cursor.get_children()
                if cursor.location.file and cursor.location.file.name == self.path]
        self.macros = [(cursor.extent.start.offset, cursor.extent.end.offset) for cursor in here
                       if cursor.kind == CursorKind.MACRO_INSTANTIATION]
        for cursor in here:
            if cursor.kind == CursorKind.FUNCTION_DECL and cursor.is_definition():
                self.function, self.result = cursor.spelling, cursor.result_type
                self.visit(cursor)

    # ---- text ----

    def text(self, start, end):
        return self.content[start:end].decode()

    def of(self, cursor):
        return self.text(cursor.extent.start.offset, cursor.extent.end.offset)

    def expanded(self, cursor):
        """True if a macro made the cursor; `true` and `false` are macros too."""
        if self.of(cursor) in ("true", "false"):
            return False
        start, end = cursor.extent.start.offset, cursor.extent.end.offset
        return any(first <= start and end <= last for first, last in self.macros)

    def add(self, operator, cursor, new, part=None):
        """Notes a mutant: `part` of the cursor, by default all of it, becomes `new`."""
        start, end = part or (cursor.extent.start.offset, cursor.extent.end.offset)
        old = self.text(start, end)
        whole = (squeeze(self.text(cursor.extent.start.offset, start)), squeeze(old), new,
                 squeeze(self.text(end, cursor.extent.end.offset)))
        key = (self.function, operator, whole)
        # The second of the same places in a function is another mutant.
        self.times[key] = self.times.get(key, 0) + 1
        text = "\0".join((*whole, str(self.times[key])))
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        short = self.name.removeprefix("src/")
        line = self.content.count(b"\n", 0, start) + 1
        self.found.append(Mutant(f"{short}:{self.function}:{operator}:{digest}", self.name, line,
                                 start, end, old, new))

    # ---- the tree ----

    def visit(self, cursor):
        if cursor.kind == CursorKind.CALL_EXPR and PRINTS.fullmatch(cursor.spelling):
            return
        if not self.expanded(cursor):
            self.mutate(cursor)
        for child in cursor.get_children():
            if cursor.kind == CursorKind.COMPOUND_STMT:
                self.statement(child)
            if cursor.kind == CursorKind.CASE_STMT and child == next(cursor.get_children()):
                continue
            self.visit(child)

    def mutate(self, cursor):
        kind = cursor.kind
        if kind in (CursorKind.BINARY_OPERATOR, CursorKind.COMPOUND_ASSIGNMENT_OPERATOR):
            self.binary(cursor)
        elif kind == CursorKind.UNARY_OPERATOR:
            self.unary(cursor)
        elif kind in (CursorKind.IF_STMT, CursorKind.CONDITIONAL_OPERATOR):
            self.condition(cursor)
        elif kind == CursorKind.CALL_EXPR:
            self.arguments(cursor)
        elif kind == CursorKind.INTEGER_LITERAL:
            self.literal(cursor)
        elif kind == CursorKind.RETURN_STMT:
            self.returned(cursor)

    def sign(self, cursor):
        """The operator of a binary expression, and where it is."""
        left, right = cursor.get_children()
        start, end = left.extent.end.offset, right.extent.start.offset
        between = re.sub(r"/\*.*?\*/", lambda comment: " " * len(comment[0].encode()),
                         self.text(start, end), flags=re.S)
        sign = between.strip()
        at = start + len(between[:between.find(sign)].encode())
        return sign, (at, at + len(sign))

    def binary(self, cursor):
        left, right = cursor.get_children()
        sign, place = self.sign(cursor)
        chosen = sign in COMPARED and cursor.extent.start.offset in self.choices
        if sign in SWAPS and not chosen:
            operator, new = SWAPS[sign]
            self.add(operator, cursor, new, place)
        if sign in ("&&", "||"):
            self.add("operand", cursor, self.of(left))
            self.add("operand", cursor, self.of(right))

    def unary(self, cursor):
        text = self.of(cursor)
        if text.startswith("!"):
            self.add("negate", cursor, f"!!{text[1:]}")
        for old, new in (("++", "--"), ("--", "++")):
            start, end = cursor.extent.start.offset, cursor.extent.end.offset
            if text.startswith(old):
                self.add("arithmetic", cursor, new, (start, start + 2))
            elif text.endswith(old):
                self.add("arithmetic", cursor, new, (end - 2, end))

    def condition(self, cursor):
        """A condition is negated, unless its own mutants do the same; and the way out is lost."""
        condition, *branches = cursor.get_children()
        text = self.of(condition)
        if self.expanded(condition):
            return
        compound = (condition.kind == CursorKind.BINARY_OPERATOR
                    and self.sign(condition)[0] in NEGATED)
        if cursor.kind == CursorKind.CONDITIONAL_OPERATOR and compound:
            self.choice(condition, *branches)
        if not compound and not text.startswith("!"):
            self.add("negate", condition, f"!({text})")
        if cursor.kind == CursorKind.IF_STMT and len(branches) == 1:
            body = list(branches[0].get_children())
            if len(body) == 1 and body[0].kind in LEAVES:
                self.add("exit", condition, f"({text}) && 0")

    def choice(self, condition, *branches):
        """Notes where the smaller or larger of two is chosen, or what one has beyond the other: if
        they are equal, both branches have the same value."""
        sign, _ = self.sign(condition)
        left, right = (squeeze(self.of(side)) for side in condition.get_children())
        chosen = [re.sub(r"^\(\w+\)", "", squeeze(self.of(branch))) for branch in branches]
        low, high = (left, right) if sign in ("<", "<=") else (right, left)
        beyond = re.compile(r"\(*" + re.escape(f"{high} - {low}") + r"\)*( / [\w.>-]+)?\)*")
        if sign in COMPARED and (
                sorted(chosen) == sorted((left, right))
                or chosen[1] == "0" and beyond.fullmatch(chosen[0])):
            self.choices.add(condition.extent.start.offset)

    def statement(self, cursor):
        """A call or an assignment whose value nobody uses is dropped."""
        call = cursor
        if cursor.kind == CursorKind.CSTYLE_CAST_EXPR:
            call = list(cursor.get_children())[-1]
        if self.expanded(cursor):
            return
        if call.kind == CursorKind.CALL_EXPR:
            if not PRINTS.fullmatch(call.spelling):
                self.add("lock" if LOCKS.fullmatch(call.spelling) else "call", cursor, "(void)0")
        elif cursor.kind == CursorKind.COMPOUND_ASSIGNMENT_OPERATOR:
            self.add("assignment", cursor, "(void)0")
        elif cursor.kind == CursorKind.BINARY_OPERATOR and self.sign(cursor)[0] == "=":
            self.add("assignment", cursor, "(void)0")

    def arguments(self, cursor):
        """Two neighbours of the same type change places."""
        function = cursor.referenced
        arguments = list(cursor.get_arguments())
        if function is None or function.type.kind != TypeKind.FUNCTIONPROTO:
            return
        types = [kind.get_canonical().spelling for kind in function.type.argument_types()]
        for i in range(min(len(arguments), len(types)) - 1):
            first, second = self.of(arguments[i]), self.of(arguments[i + 1])
            made = self.expanded(arguments[i]) or self.expanded(arguments[i + 1])
            if types[i] == types[i + 1] and first != second and not made:
                place = (arguments[i].extent.start.offset, arguments[i + 1].extent.end.offset)
                self.add("swap", cursor, f"{second}, {first}", place)

    def literal(self, cursor):
        text = self.of(cursor)
        words = {"true": "false", "false": "true", "0": "1", "1": "0"}
        if text in words:
            self.add("constant", cursor, words[text])
        elif re.fullmatch(r"\d+", text):
            self.add("constant", cursor, str(int(text) + 1))

    def returned(self, cursor):
        value = next(cursor.get_children(), None)
        if value is None or self.expanded(value):
            return
        kind, text = self.result.get_canonical(), self.of(value)
        if self.result.spelling == "enum spw_err":
            if not text.startswith("SPW_OK"):
                self.add("error", value, "SPW_OK")
        elif kind.kind == TypeKind.POINTER:
            self.add("return", value, "NULL")
        elif kind.kind == TypeKind.BOOL and text not in ("true", "false"):
            self.add("return", value, f"!({text})")
        elif kind.kind in SIMPLE and kind.kind != TypeKind.BOOL and not text.isdigit():
            self.add("return", value, "0")


def of_file(root, name, arguments):
    """The mutants of root/name, compiled with these arguments, in the order of the text."""
    found = File(root, name, arguments).found
    return sorted(found, key=lambda mutant: (mutant.start, mutant.end, mutant.id))
