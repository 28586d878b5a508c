/** Tests the time that is left according to the line that shows the progress. */
import { PassThrough } from 'node:stream';
import t from 'tap';
import { Progress } from '#gateway/cli/command/progress.ts';
import { Terminal } from '#shared/cli/terminal.ts';
import { until } from '#test/support/until.ts';

t.test('the time left is right within a factor of two from 10 % on, also at an uneven speed', async (t) => {
  const total = 100 * 1_048_576;
  const allSeconds = 400;
  for (const percent of [10, 25, 50, 90]) {
    const stderr = Object.assign(new PassThrough(), { isTTY: true, columns: 120 });
    let shown = '';
    stderr.on('data', (chunk) => {
      shown += chunk;
    });
    let now = 0;
    const progress = new Progress(new Terminal({ stdout: new PassThrough(), stderr }), () => now);
    for (let done = 1; done <= percent; done++) {
      // Each hundredth takes four seconds, but the last ones before the look are read at once.
      if (done <= percent * 0.9) now = (done * allSeconds * 1000) / 100 / 0.9;
      progress.at(done * 1_048_576, total);
    }
    now += 200;
    progress.at(percent * 1_048_576, total);
    await until(() => shown.includes(`${percent} % |`));
    progress.end();
    const [, minutes = '0', seconds = ''] = /.*\| (?:(\d+)m)?(\d+)s left/s.exec(shown) ?? [];
    const left = Number(minutes) * 60 + Number(seconds);
    const right = allSeconds * (1 - percent / 100);
    t.ok(left >= right / 2 && left <= right * 2, `${percent} %: ${left} s instead of ${right}`);
  }
});
