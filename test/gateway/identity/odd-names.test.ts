/** The gateway counts or refuses each value that a parser of Node.js reads, however the name is spelled. */
import { parse } from 'node:querystring';
import express from 'express';
import t from 'tap';
import { FIELD, mustBeCounted, oddQueries } from '#test/support/odd-names.ts';
import { rounds } from '#test/support/seed.ts';

/** Express's own parser is qs, which its body parser uses too. */
const extended = express().set('query parser', 'extended').get('query parser fn') as (
  text: string,
) => Record<string, unknown>;

const PARSERS: Readonly<Record<string, (text: string) => unknown>> = {
  qs: (text) => extended(text)[FIELD],
  querystring: (text) => parse(text)[FIELD],
  URLSearchParams: (text) => new URLSearchParams(text).get(FIELD),
};

for (const [name, read] of Object.entries(PARSERS)) {
  t.test(`counts or refuses what ${name} reads`, async (t) => {
    let found = 0;
    for (const query of oddQueries(rounds(30_000))) {
      const value = read(query);
      if (value !== undefined && value !== null) found++;
      mustBeCounted(query, value, name);
    }
    t.ok(found > rounds(1000), `${found} queries had the field`);
  });
}
