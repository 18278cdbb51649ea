"""Policy files with mistakes, and what exactly is said of each."""

RULE = '{"name": "r%d", "match": {"nth": 1}, "action": {}}'


def R(rules):
    return '{"version": 1, "rules": [\n' + rules + ']}\n'


def M(match):
    return R('{"name": "r", "action": {},\n "match": ' + match + '}')


def A(action):
    return R('{"name": "r",\n "action": ' + action + '}')


# A name, the file, and the lines that are expected, without the file's name.
CASES = [
    ('empty', b"",
     ["1:1: the file is empty, expected '{'"]),
    ('blanks', b" \n\t\n",
     ["1:1: the file is empty, expected '{'"]),
    ('binary', bytes(range(256)),
     ['1:1: byte 0x00, expected a value']),
    ('an ELF file', b"\x7fELF\x02\x01\x01\0\0",
     ['1:1: byte 0x7f, expected a value']),
    ('NUL behind the text', b'{"version": 1, "rules": []}\0',
     ['1:28: byte 0x00, expected the end of the file']),
    ('byte order mark', b'\xef\xbb\xbf{"version": 1, "rules": []}',
     ["1:1: a byte order mark, expected '{'"]),
    ('UTF-16', '{"version": 1}'.encode("utf-16-le"),
     ['1:2: byte 0x00, expected a key in double quotes']),
    ('Latin-1', '{"version": 1, "comment": "für", "rules": []}'.encode("latin-1"),
     ['1:29: byte 0xfc is not UTF-8, expected UTF-8 text']),
    ('cut in a string', b'{"version": 1, "rul',
     ['1:20: the file ends in a string, expected "']),
    ('cut in a list', b'{"version": 1, "rules": [',
     ['1:26: the file ends here, expected a value']),
    ('cut behind a key', b'{"version": 1, "rules"',
     ["1:23: the file ends here, expected ':' behind the key"]),
    ('no comma', b'{"version": 1\n "rules": []}',
     ['2:2: \'"\', expected \',\' or \'}\'']),
    ('a comma too much', b'{"version": 1, "rules": [],}',
     ["1:28: '}', expected another key after the comma"]),
    ('a comment', b'// mine\n{"version": 1, "rules": []}',
     ["1:1: '/', expected a value"]),
    ('single quotes', b"{'version': 1}",
     ["1:2: ''', expected a key in double quotes"]),
    ('two documents', b'{"version": 1, "rules": []}\n{}',
     ["2:1: '{', expected the end of the file"]),
    ('leading zero', b'{"version": 01, "rules": []}',
     ['1:13: a number with a leading zero, expected none']),
    ('a bad escape', b'{"version": 1, "comment": "C:\\dir", "rules": []}',
     ['1:30: an unknown escape, expected one of \\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX']),
    ('a NUL character', b'{"version": 1, "comment": "\\u0000", "rules": []}',
     ['1:28: \\u0000, expected any other character']),
    ('half a surrogate pair', b'{"version": 1, "comment": "\\ud800", "rules": []}',
     ['1:28: half of a surrogate pair, expected both halves']),
    ('a line break in a string', b'{"version": 1, "comment": "a\nb", "rules": []}',
     ['1:29: a line break or control character in a string, expected " before it, or an escape '
      'such as \\n']),
    ('not a number', b'{"version": NaN, "rules": []}',
     ["1:13: 'N', expected a value"]),
    ('a number of 70 digits', b'{"version": ' + b"1" * 70 + b', "rules": []}',
     ['1:13: a number of more than 63 characters, expected a shorter one']),
    ('too deep', b'{"version": 1, "rules": ' + b"[" * 40 + b"]" * 40 + b"}",
     ['1:40: nested too deep, expected at most 16 levels']),
    ('a list', b"[1]",
     ['1:1: the file is no JSON object, expected {"version": 1, "rules": [...]}']),
    ('a string', b'"version"',
     ['1:1: the file is no JSON object, expected {"version": 1, "rules": [...]}']),
    ('null', b"null",
     ['1:1: the file is no JSON object, expected {"version": 1, "rules": [...]}']),
    ('nothing in it', b"{}",
     ['1:1: the policy has no "version", expected "version": 1',
      '1:1: the policy has no "rules", expected "rules": a list of at most 64 objects']),
    ('no version', b'{"rules": []}',
     ['1:1: the policy has no "version", expected "version": 1']),
    ('no rules', b'{"version": 1}',
     ['1:1: the policy has no "rules", expected "rules": a list of at most 64 objects']),
    ('version as text', b'{"version": "1", "rules": []}',
     ['1:13: "version" is "1", expected 1']),
    ('future version', b'{"version": 2, "rulez": {"new": true}}',
     ['1:13: "version" is 2, a version that this spillway does not know, expected 1']),
    ('version 0', b'{"version": 0, "rules": []}',
     ['1:13: "version" is 0, a version that this spillway does not know, expected 1']),
    ('version 1.5', b'{"version": 1.5, "rules": []}',
     ['1:13: "version" is 1.5, a version that this spillway does not know, expected 1']),
    ('version of another kind twice', b'{"version": 1, "version": 2, "rules": []}',
     ['1:16: "version" is given twice in the policy, expected it once']),
    ('unknown key', b'{"version": 1, "rule": [], "rules": []}',
     ['1:16: "rule" is not a key of the policy, expected one of $schema, version, comment, '
      'rules (did you mean "rules"?)']),
    ('unknown key far from all', b'{"version": 1, "xyzzy": [], "rules": []}',
     ['1:16: "xyzzy" is not a key of the policy, expected one of $schema, version, comment, '
      'rules']),
    ('key in another case', b'{"Version": 1, "version": 1, "rules": []}',
     ['1:2: "Version" is not a key of the policy, expected one of $schema, version, comment, '
      'rules (did you mean "version"?)']),
    ('empty key', b'{"": 1, "version": 1, "rules": []}',
     ['1:2: "" is not a key of the policy, expected one of $schema, version, comment, rules']),
    ('a key of 100 characters', b'{"version": 1, "' + b"k" * 100 + b'": 1, "rules": []}',
     ['1:16: "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk... is not a key of '
      'the policy, expected one of $schema, version, comment, rules']),
    ('comment as number', b'{"version": 1, "comment": 7, "rules": []}',
     ['1:27: "comment" is 7, expected a string or a list of strings']),
    ('comment with a number', b'{"version": 1, "comment": ["a", 7], "rules": []}',
     ['1:33: "comment" is 7, expected a string or a list of strings']),
    ('rules as object', b'{"version": 1, "rules": {}}',
     ['1:25: "rules" is an object, expected a list of at most 64 objects']),
    ('a rule as text', R('"all"'),
     ['2:1: "rules" is "all", expected an object']),
    ('65 rules', R(",\n".join(RULE % i for i in range(65))),
     ['1:25: "rules" is a list, with more than 64 items, expected a list of at most 64 objects']),
    ('rule without a name', R('{"action": {}}'),
     ['2:1: a rule has no "name", expected "name": a name of 1 to 64 letters, digits and - _ .']),
    ('rule without an action', R('{"name": "r"}'),
     ['2:1: a rule has no "action", expected "action": an object']),
    ('rule name with blanks', R('{"name": "my rule", "action": {}}'),
     ['2:10: "name" is "my rule", expected a name of 1 to 64 letters, digits and - _ .']),
    ('rule name empty', R('{"name": "", "action": {}}'),
     ['2:10: "name" is "", expected a name of 1 to 64 letters, digits and - _ .']),
    ('rule name of 65 characters', R('{"name": "%s", "action": {}}' % ("n" * 65)),
     ['2:10: "name" is "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn..., '
      'expected a name of 1 to 64 letters, digits and - _ .']),
    ('two rules of one name',
     R('{"name": "r", "match": {"nth": 1}, "action": {}},\n{"name": "r", "action": {}}'),
     ['3:1: rule 2 is named "r" like rule 1, expected a name of its own']),
    ('rule behind one for all',
     R('{"name": "all", "match": {}, "action": {}},\n{"name": "r", "action": {}}'),
     ['3:1: rule 2 "r" can never decide, because rule 1 "all" matches every allocation, '
      'expected that rule to be the last']),
    ('match as list', M("[]"),
     ['3:11: "match" is an empty list, expected an object']),
    ('unknown key of match', M('{"pyton": {"file": "a.py"}}'),
     ['3:12: "pyton" is not a key of match, expected one of python, native, thread, tag, node, '
      'module_class, module, size, device, api, process, rank, nth, nth_in_step '
      '(did you mean "python"?)']),
    ('key given twice', M('{"thread": "a", "thread": "b"}'),
     ['3:27: "thread" is given twice in match, expected it once']),
    ('python as text', M('{"python": "train.py"}'),
     ['3:22: "python" is "train.py", expected an object or a list of objects']),
    ('python as empty list', M('{"python": []}'),
     ['3:22: "python" is an empty list, expected an object or a list of objects']),
    ('python with a number', M('{"python": [{"file": "a.py"}, 5]}'),
     ['3:41: "python" is 5, expected an object']),
    ('python that says nothing', M('{"python": {}}'),
     ['3:22: python says nothing, expected at least one of file, function, lines']),
    ('python with frame alone', M('{"python": {"frame": "top"}}'),
     ['3:22: python says nothing, expected at least one of file, function, lines']),
    ('native that says nothing', M('{"native": {}}'),
     ['3:22: native says nothing, expected at least one of symbol, library']),
    ('unknown key of python', M('{"python": {"fiel": "a.py"}}'),
     ['3:23: "fiel" is not a key of python, expected one of file, function, lines, frame (did '
      'you mean "file"?)']),
    ('unknown key of native', M('{"native": {"function": "f"}}'),
     ['3:22: native says nothing, expected at least one of symbol, library',
      '3:23: "function" is not a key of native, expected one of symbol, library, frame']),
    ('file as number', M('{"python": {"file": 5}}'),
     ['3:31: "file" is 5, expected a pattern or a list of patterns']),
    ('file as empty list', M('{"python": {"file": []}}'),
     ['3:31: "file" is an empty list, expected a pattern or a list of patterns']),
    ('file with null', M('{"python": {"file": ["a.py", null]}}'),
     ['3:40: "file" is null, expected a pattern or a list of patterns']),
    ('file of a nested list', M('{"python": {"file": [["a.py"]]}}'),
     ['3:32: "file" is a list, expected a pattern or a list of patterns']),
    ('65 files', M('{"python": {"file": [%s]}}' % ", ".join('"f%d"' % i for i in range(65))),
     ['3:31: "file" is a list, with more than 64 items, expected a pattern or a list of patterns']),
    ('bad pattern: open set', M('{"python": {"file": "tor[ch"}}'),
     ['3:31: "file" is "tor[ch", a [ without its ], expected a pattern or a list of patterns']),
    ('bad pattern: empty', M('{"thread": ""}'),
     ['3:22: "thread" is "", it is empty, expected a pattern or a list of patterns']),
    ('bad pattern: backslash', M('{"thread": ["x", "a\\\\"]}'),
     ['3:28: "thread" is "a\\\\", it ends in a backslash, expected a pattern or a list of '
      'patterns']),
    ('bad pattern: backwards', M('{"native": {"symbol": "[z-a]"}}'),
     ['3:33: "symbol" is "[z-a]", a set whose range runs backwards, expected a pattern or a '
      'list of patterns']),
    ('bad pattern: too long', M('{"thread": "%s"}' % ("p" * 257)),
     ['3:22: "thread" is "ppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp..., it '
      'is longer than 256 bytes, expected a pattern or a list of patterns']),
    ('lines as a bad range', M('{"python": {"lines": "40..50"}}'),
     ['3:32: "lines" is "40..50", expected a number from 1, a range such as "1-20" or "10-", '
      'or a list of these']),
    ('lines backwards', M('{"python": {"lines": "50-40"}}'),
     ['3:32: "lines" is "50-40", a range that runs backwards, expected a number from 1, a '
      'range such as "1-20" or "10-", or a list of these']),
    ('line 0', M('{"python": {"lines": 0}}'),
     ['3:32: "lines" is 0, out of range, expected a number from 1, a range such as "1-20" or '
      '"10-", or a list of these']),
    ('line -3', M('{"python": {"lines": -3}}'),
     ['3:32: "lines" is -3, out of range, expected a number from 1, a range such as "1-20" or '
      '"10-", or a list of these']),
    ('line 1.5', M('{"python": {"lines": [1, 1.5]}}'),
     ['3:36: "lines" is 1.5, expected a number from 1, a range such as "1-20" or "10-", or a '
      'list of these']),
    ('line beyond all', M('{"python": {"lines": 1e300}}'),
     ['3:32: "lines" is 1e300, expected a number from 1, a range such as "1-20" or "10-", or a '
      'list of these']),
    ('lines with an overflow', M('{"python": {"lines": "1-99999999999999999999"}}'),
     ['3:32: "lines" is "1-99999999999999999999", expected a number from 1, a range such as '
      '"1-20" or "10-", or a list of these']),
    ('frame unknown', M('{"python": {"file": "a.py", "frame": "topp"}}'),
     ['3:48: "frame" is "topp", expected "any" or "top" (did you mean "top"?)']),
    ('frame as number', M('{"python": {"file": "a.py", "frame": 0}}'),
     ['3:48: "frame" is 0, expected "any" or "top"']),
    ('size as text', M('{"size": "16MiB"}'),
     ['3:20: "size" is "16MiB", expected an object or a list of objects']),
    ('size that says nothing', M('{"size": {}}'),
     ['3:20: size says nothing, expected at least one of min, max']),
    ('size with a bad unit', M('{"size": {"min": "16Megs"}}'),
     ['3:28: "min" is "16Megs", expected a size such as "16MiB" or a number of bytes']),
    ('size as percentage', M('{"size": {"min": "50%"}}'),
     ['3:28: "min" is "50%", expected a size such as "16MiB" or a number of bytes']),
    ('size negative', M('{"size": {"min": -1}}'),
     ['3:28: "min" is -1, expected a size such as "16MiB" or a number of bytes']),
    ('size negative text', M('{"size": {"min": "-16MiB"}}'),
     ['3:28: "min" is "-16MiB", expected a size such as "16MiB" or a number of bytes']),
    ('size fraction of a byte', M('{"size": {"min": 1.5}}'),
     ['3:28: "min" is 1.5, expected a size such as "16MiB" or a number of bytes']),
    ('size beyond exact numbers', M('{"size": {"min": 18446744073709551615}}'),
     ['3:28: "min" is 18446744073709551615, too large for a number in JSON, expected a size '
      'such as "16MiB" or a number of bytes']),
    ('size beyond 64 bits', M('{"size": {"min": "99999999TiB"}}'),
     ['3:28: "min" is "99999999TiB", expected a size such as "16MiB" or a number of bytes']),
    ('size beyond doubles', M('{"size": {"min": 1e999}}'),
     ['3:28: "min" is 1e999, too large for a number in JSON, expected a size such as "16MiB" '
      'or a number of bytes']),
    ('size min above max', M('{"size": {"min": "2MiB", "max": "1MiB"}}'),
     ['3:20: "min" is above "max", expected at most "max"']),
    ('device as text', M('{"device": "cuda:0"}'),
     ['3:22: "device" is "cuda:0", expected a number from 0, a range such as "0-20" or "10-", '
      'or a list of these']),
    ('device -1', M('{"device": -1}'),
     ['3:22: "device" is -1, out of range, expected a number from 0, a range such as "0-20" or '
      '"10-", or a list of these']),
    ('device true', M('{"device": true}'),
     ['3:22: "device" is true, expected a number from 0, a range such as "0-20" or "10-", or a '
      'list of these']),
    ('api that is none', M('{"api": "cuMemAllocAsink"}'),
     ['3:19: "api" is "cuMemAllocAsink", no function that allocates, expected a pattern of a '
      'function such as "cuMemAllocAsync", or a list of patterns (did you mean '
      '"cuMemAllocAsync"?)']),
    ('api pattern for none', M('{"api": ["cuMem*", "hip*"]}'),
     ['3:30: "api" is "hip*", no function that allocates, expected a pattern of a function '
      'such as "cuMemAllocAsync", or a list of patterns']),
    ('rank -1', M('{"rank": -1}'),
     ['3:20: "rank" is -1, out of range, expected a number from 0, a range such as "0-20" or '
      '"10-", or a list of these']),
    ('nth 0', M('{"nth": 0}'),
     ['3:19: "nth" is 0, out of range, expected a number from 1, a range such as "1-20" or '
      '"10-", or a list of these']),
    ('nth_in_step 0', M('{"nth_in_step": 0}'),
     ['3:27: "nth_in_step" is 0, out of range, expected a number from 1, a range such as "1-20" or '
      '"10-", or a list of these']),
    ('action as text', R('{"name": "r", "action": "host"}'),
     ['2:25: "action" is "host", expected an object']),
    ('unknown key of action', A('{"place": "host"}'),
     ['3:13: "place" is not a key of action, expected one of placement, movable, priority, '
      'limit, host_share, region, commit, log, recompute, every, share (did you mean '
      '"placement"?)']),
    ('placement unknown', A('{"placement": "hots"}'),
     ['3:26: "placement" is "hots", expected "device", "host" or "auto" (did you mean "host"?)']),
    ('placement in another case', A('{"placement": "Host"}'),
     ['3:26: "placement" is "Host", expected "device", "host" or "auto" (did you mean "host"?)']),
    ('placement as list', A('{"placement": ["host"]}'),
     ['3:26: "placement" is a list, expected "device", "host" or "auto"']),
    ('movable as text', A('{"movable": "yes"}'),
     ['3:24: "movable" is "yes", expected true or false']),
    ('priority too high', A('{"priority": 101}'),
     ['3:25: "priority" is 101, expected a whole number from -100 to 100']),
    ('priority as text', A('{"priority": "high"}'),
     ['3:25: "priority" is "high", expected a whole number from -100 to 100']),
    ('priority 0.5', A('{"priority": 0.5}'),
     ['3:25: "priority" is 0.5, expected a whole number from -100 to 100']),
    ('limit as size', A('{"limit": "4GiB"}'),
     ['3:22: "limit" is "4GiB", expected an object']),
    ('limit without then', A('{"limit": {"max": "4GiB"}}'),
     ['3:22: limit has no "then", expected "then": "spill", "fail" or "warn"']),
    ('limit without max', A('{"limit": {"then": "fail"}}'),
     ['3:22: limit has no "max", expected "max": a size such as "16MiB", a percentage such as '
      '"50%" or a number of bytes']),
    ('limit with a bad then', A('{"limit": {"max": "4GiB", "then": "wran"}}'),
     ['3:46: "then" is "wran", expected "spill", "fail" or "warn" (did you mean "warn"?)']),
    ('limit of 120 %', A('{"limit": {"max": "120%", "then": "fail"}}'),
     ['3:30: "max" is "120%", more than the whole, expected a size such as "16MiB", a '
      'percentage such as "50%" or a number of bytes']),
    ('host_share as number', A('{"host_share": 0.25}'),
     ['3:27: "host_share" is 0.25, expected a percentage such as "25%", from 0% to 100%']),
    ('host_share as size', A('{"host_share": "1GiB"}'),
     ['3:27: "host_share" is "1GiB", expected a percentage such as "25%", from 0% to 100%']),
    ('host_share of 101 %', A('{"host_share": "101%"}'),
     ['3:27: "host_share" is "101%", more than the whole, expected a percentage such as "25%", '
      'from 0% to 100%']),
    ('host_share and placement', A('{"host_share": "25%", "placement": "host"}'),
     ['3:12: "host_share" beside "placement" "host", expected only one of these keys']),
    ('region with a blank', A('{"region": "my weights"}'),
     ['3:23: "region" is "my weights", expected a name of 1 to 32 letters, digits and - _ .']),
    ('region of 33 characters', A('{"region": "%s"}' % ("r" * 33)),
     ['3:23: "region" is "rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr", expected a name of 1 to 32 '
      'letters, digits and - _ .']),
    ('commit unknown', A('{"commit": "lazily"}'),
     ['3:23: "commit" is "lazily", expected "eager" or "lazy" (did you mean "lazy"?)']),
    ('log as word', A('{"log": "debug"}'),
     ['3:20: "log" is "debug", expected true or false']),
    ('recompute as text', A('{"recompute": "yes"}'),
     ['3:26: "recompute" is "yes", expected true or false']),
    ('recompute misspelt', A('{"recompte": true}'),
     ['3:13: "recompte" is not a key of action, expected one of placement, movable, priority, '
      'limit, host_share, region, commit, log, recompute, every, share (did you mean '
      '"recompute"?)']),
    ('recompute and placement', A('{"recompute": true, "placement": "host", "log": true}'),
     ['2:1: "recompute" beside "placement", expected a rule of its own for each',
      '2:1: "recompute" beside "log", expected a rule of its own for each']),
    ('recompute of an allocation',
     R('{"name": "r", "action": {"recompute": true},\n "match": {"module": "a.*", "size": '
       '{"min": 1}, "nth": 1}}'),
     ['2:1: "recompute" beside "size", expected only module, module_class, process and rank in '
      'match',
      '2:1: "recompute" beside "nth", expected only module, module_class, process and rank in '
      'match']),
    ('recompute of a path of classes',
     R('{"name": "r", "action": {"recompute": true}, "match": {"module": ["a.*", "GPT/Block"]}}'),
     ['2:1: "recompute" of "GPT/Block", a path of classes, expected the names of modules such as '
      '"model.layers.*", or "module_class"']),
    ('every without recompute', A('{"every": 2}'),
     ['3:12: "every" without "recompute": true, expected both keys']),
    ('share of modules that do not run again', A('{"recompute": false, "share": "50%"}'),
     ['3:12: "share" without "recompute": true, expected both keys']),
    ('every and share', A('{"recompute": true, "every": 2, "share": "50%"}'),
     ['3:12: "every" beside "share", expected only one of these keys']),
    ('every 0', A('{"recompute": true, "every": 0}'),
     ['3:41: "every" is 0, expected a whole number from 1 to 1000']),
    ('share as number', A('{"recompute": true, "share": 0.5}'),
     ['3:41: "share" is 0.5, expected a percentage such as "25%", from 0% to 100%']),
    ('a rule behind one for all, and one about modules between',
     R('{"name": "all", "action": {}},\n{"name": "m", "action": {"recompute": true}},\n'
       '{"name": "r", "action": {}}'),
     ['4:1: rule 3 "r" can never decide, because rule 1 "all" matches every allocation, '
      'expected that rule to be the last']),
    ('five mistakes',
     '{"versoin": 1, "version": 1,\n "rules": [\n'
     '  {"name": "ä b", "match": {"python": {"lines": "x"}},\n'
     '   "action": {"log": 1, "lgo": 2}}]}\n',
     ['1:2: "versoin" is not a key of the policy, expected one of $schema, version, comment, '
      'rules (did you mean "version"?)',
      '3:12: "name" is "ä b", expected a name of 1 to 64 letters, digits and - _ .',
      '3:49: "lines" is "x", expected a number from 1, a range such as "1-20" or "10-", or a '
      'list of these',
      '4:22: "log" is 1, expected true or false',
      '4:25: "lgo" is not a key of action, expected one of placement, movable, priority, '
      'limit, host_share, region, commit, log, recompute, every, share (did you mean "log"?)']),
    ('columns are characters', '{"version": 1, "comment": "äöü€😀", "rulez": []}',
     ['1:36: "rulez" is not a key of the policy, expected one of $schema, version, comment, '
      'rules (did you mean "rules"?)']),
]

# Mistakes that JSON Schema cannot say; all others of files that are JSON it finds too.
BEYOND_SCHEMA = {
    "key given twice", "two rules of one name",
    "rule behind one for all", "bad pattern: open set", "bad pattern: backslash",
    "bad pattern: backwards", "lines backwards", "size beyond 64 bits", "size min above max",
    "api that is none", "api pattern for none", "limit of 120 %", "host_share of 101 %",
    "a rule behind one for all, and one about modules between", "recompute of a path of classes",
}
