import json, sys
from urllib.parse import parse_qs
for line in sys.stdin:
    text = line.rstrip('\n')
    # Until 3.9, a semicolon separated too.
    print(json.dumps([value for one in (text, text.replace(';', '&')) for value in parse_qs(one).get(sys.argv[1], [])]))
