/** The traffic of the last hour, as the page gets it. */

/** The first event of the stream. */
export interface Traffic {
  readonly spanSeconds: number;
  readonly lastSpanAt: string;
  readonly since: string;
  readonly series: Readonly<Record<string, readonly number[]>>;
}

/** Returns the first event of the stream. */
export async function trafficOf(admin: string): Promise<Traffic> {
  const stop = new AbortController();
  const { body } = await fetch(`${admin}/api/live`, { signal: stop.signal });
  let text = '';
  for await (const chunk of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    if (text.includes('\n\n')) break;
  }
  stop.abort();
  const [, data = 'null'] = /^event: traffic\ndata: (.*)$/m.exec(text) ?? [];
  return JSON.parse(data);
}
