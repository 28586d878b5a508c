/** Sends requests to a server on this machine, without redirects and automatic headers, and reads whole replies. */
import { Pool } from 'undici';
import type { Send } from './world.ts';

export interface Http {
  readonly send: Send;
  close(): Promise<void>;
}

/** @param connections maximum number of concurrent requests; more wait */
export function openHttp(origin: string, connections = 4): Http {
  const pool = new Pool(origin, { connections });
  return {
    async send({ body, headers = {}, method, url }) {
      const reply = await pool.request({ method, path: url, headers, body: body ?? null });
      return { status: reply.statusCode, headers: reply.headers, text: await reply.body.text() };
    },
    close: () => pool.close(),
  };
}
