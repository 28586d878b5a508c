/** Reads requests to Envoy's rate limit service. The entries of a descriptor are the properties of one request. */
import { type BadAuthorizationRequest, bad, longMethod, METHOD_TOKEN } from './authorization-request.ts';

/** A request as its proxy describes it. */
export interface Described {
  readonly ok: true;
  readonly method: string;
  readonly target: string;
  /** Alternating names and values. Each code unit of a string stands for one byte. */
  readonly rawHeaders: readonly string[];
}

export interface RateLimitRequest {
  readonly descriptors: readonly Descriptor[];
  readonly hitsAddend: number;
}

interface Descriptor {
  readonly entries: readonly { readonly key: string; readonly value: string }[];
  readonly hitsAddend: { readonly value: number } | null;
}

const METHOD = 'method';
const PATH = 'path';
const CLIENT = 'remote_address';
const HOST = 'host';
const FORWARDED_HOST = 'x-forwarded-host';
const FORWARDED_FOR = 'x-forwarded-for';
const ENTRIES_MAX = 128;
const HEADER_NAME = /^[a-z0-9-]{1,128}$/;

/** @param usesHosts whether policies depend on the host of the described request */
export function describedBy(
  { descriptors, hitsAddend }: RateLimitRequest,
  usesHosts: boolean,
): Described | BadAuthorizationRequest {
  const [descriptor, ...others] = descriptors;
  if (descriptor === undefined || others.length > 0)
    return bad(`the request has ${descriptors.length} descriptors; put all entries into one`);
  if (hitsAddend > 1 || (descriptor.hitsAddend?.value ?? 1) !== 1)
    return bad('hits_addend is not 1; set the cost of a request in the policy file');
  if (descriptor.entries.length > ENTRIES_MAX)
    return bad(`the descriptor has more than ${ENTRIES_MAX} entries`);
  const values = new Map<string, string>();
  for (const { key, value } of descriptor.entries) {
    if (values.has(key)) return bad(`the descriptor has more than one entry ${key}`);
    if (key !== CLIENT && !HEADER_NAME.test(key))
      return bad(
        `the entry ${key.slice(0, 128)} is neither ${METHOD}, ${PATH}, ${CLIENT} nor a header name in lower case`,
      );
    values.set(key, Buffer.from(value).toString('latin1'));
  }
  const method = values.get(METHOD) ?? '';
  const target = values.get(PATH) ?? '';
  const client = values.get(CLIENT) ?? '';
  const chain = values.get(FORWARDED_FOR) ?? client;
  if (!METHOD_TOKEN.test(method)) return missing(METHOD, ':method');
  const long = longMethod(method);
  if (long !== null) return long;
  if (target === '') return missing(PATH, ':path');
  if (chain.trim() === '')
    return bad(
      `the descriptor has no entry ${CLIENT}; without it every client would count as the proxy's own address`,
    );
  if (usesHosts && !values.has(HOST)) return missing(HOST, ':authority');
  if (usesHosts && values.has(FORWARDED_HOST))
    return bad(
      `the descriptor has an entry ${FORWARDED_HOST}, which clients can invent; remove it, ${HOST} is enough`,
    );
  for (const key of [METHOD, PATH, CLIENT, FORWARDED_FOR]) values.delete(key);
  return { ok: true, method, target, rawHeaders: [...[...values].flat(), FORWARDED_FOR, chain] };
}

function missing(key: string, header: string): BadAuthorizationRequest {
  return bad(`the descriptor has no entry ${key}; add the header ${header} under this descriptor_key`);
}
