/** The gateway counts or refuses each value that PHP, Rack or Python reads, however the name is spelled. */
import { spawnSync } from 'node:child_process';
import t from 'tap';
import { FIELD, mustBeCounted, oddQueries } from '#test/support/odd-names.ts';

/** Each program reads a query from each line, and writes what it found as one line of JSON. */
const PARSERS = {
  PHP: [
    'php',
    '-r',
    `while (($line = fgets(STDIN)) !== false) {
      parse_str(rtrim($line, "\\n"), $read);
      echo json_encode($read['${FIELD}'] ?? null, JSON_INVALID_UTF8_SUBSTITUTE | JSON_PARTIAL_OUTPUT_ON_ERROR), "\\n";
    }`,
  ],
  Rack: [
    'ruby',
    '-rrack',
    '-rjson',
    '-e',
    `STDIN.each_line(chomp: true) do |line|
      read = begin
        Rack::Utils.parse_nested_query(line)['${FIELD}']
      rescue StandardError
        nil
      end
      puts(read.is_a?(String) ? read.scrub.to_json : read.to_json)
    end`,
  ],
  Python: [
    'python3',
    '-c',
    `import json, sys
from urllib.parse import parse_qs
for line in sys.stdin:
    text = line.rstrip('\\n')
    # Until 3.9, a semicolon separated too.
    print(json.dumps([value for one in (text, text.replace(';', '&')) for value in parse_qs(one).get('${FIELD}', [])]))`,
  ],
} as const;

for (const [name, [program, ...args]] of Object.entries(PARSERS)) {
  t.test(`counts or refuses what ${name} reads`, async (t) => {
    const queries = oddQueries(30_000);
    const { status, stdout, stderr } = spawnSync(program, args, {
      input: `${queries.join('\n')}\n`,
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
    });
    t.equal(status, 0, stderr);
    const replies = stdout.trimEnd().split('\n');
    t.equal(replies.length, queries.length);
    let found = 0;
    for (const [i, query] of queries.entries()) {
      const read: unknown = JSON.parse(replies[i] ?? '');
      if (typeof read === 'string' || (Array.isArray(read) && read.length > 0)) found++;
      mustBeCounted(query, read, name);
    }
    t.ok(found > 1000, `${found} queries had the field`);
  });
}
