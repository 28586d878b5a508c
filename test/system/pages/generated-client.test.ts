/** The client of docs/api.md in examples/: generated from the description of a running API, checked by the compiler, and run. */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { startReceiver } from '#test/api/events/support.ts';
import { projectRoot, start } from '#test/support/process.ts';
import { startStack } from '#test/support/stack.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const execute = promisify(execFile);
const program = readFileSync(join(projectRoot, 'examples/api-client.ts'), 'utf8');

/** Options as strict as those of the project, for any program. */
const compilerOptions = {
  ...{ target: 'esnext', module: 'nodenext', lib: ['esnext', 'dom'], types: ['node'], noEmit: true },
  ...{ strict: true, noUncheckedIndexedAccess: true, exactOptionalPropertyTypes: true },
  ...{ allowImportingTsExtensions: true, verbatimModuleSyntax: true },
};

/** @returns the compiler's exit code and output */
async function check(folder: string): Promise<string> {
  const tsc = start([join(projectRoot, 'node_modules/typescript/lib/tsc.js'), '-p', folder]);
  return `${await tsc.ended()} ${tsc.output()}`.trim();
}

/** Writes types of a client, as `npx openapi-typescript` does. The generator has a folder of its own, filled by the first run. */
async function generate(document: string, file: string): Promise<void> {
  const cwd = join(projectRoot, 'test/support/openapi-client');
  const generator = join(cwd, 'node_modules/openapi-typescript/bin/cli.js');
  if (!existsSync(join(cwd, 'node_modules/.package-lock.json')))
    await execute('npm', ['ci', '--no-audit', '--no-fund'], { cwd });
  await execute(process.execPath, [generator, document, '-o', file], { cwd });
}

t.test('generate, check, run', async (t) => {
  const hook = await startReceiver(t);
  const stack = await startStack(t, { apiEnv: { DANGEROUSLY_ALLOW_WEBHOOK_INTERNAL_URLS: '1' } });
  const folder = temporaryFolder(t);
  symlinkSync(join(projectRoot, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }));
  await generate(`${stack.origin}/api/docs/openapi.json`, join(folder, 'floodgate.d.ts'));
  writeFileSync(join(folder, 'quick-start.ts'), program);
  t.equal(await check(folder), '0');

  const { apiKey, origin, workspaceId } = stack;
  const run = start([join(folder, 'quick-start.ts')], {
    ...{ BASE: origin, KEY: apiKey, WORKSPACE: workspaceId, HOOK: hook.url },
  });
  t.equal(await run.ended(), 0, run.output());
  t.match(JSON.parse(run.output()), {
    webhookId: String,
    secret: /^whsec_/,
    surveyId: String,
    responseId: String,
    answer: 'This',
    missing: 'Survey not found',
  });

  writeFileSync(join(folder, 'quick-start.ts'), program.replace("name: 'Quick start'", 'name: 1'));
  t.match(
    await check(folder),
    /'number' is not assignable to type 'string'/,
    'a wrong body does not compile',
  );
});
