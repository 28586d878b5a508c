/** Checks a dashboard against Grafana's own types with the compiler. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Owner } from '#test/support/gateway.ts';
import { projectRoot } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const TYPES = join(projectRoot, 'node_modules/@grafana/schema/dist/types/raw');

const PROGRAM = `
import type { Dashboard, DataSourceRef, Panel, RowPanel } from '${TYPES}/dashboard/x/types.gen.js';
import type { Options as Heatmap } from '${TYPES}/composable/heatmap/panelcfg/x/types.gen.js';
import type { Options as Stat } from '${TYPES}/composable/stat/panelcfg/x/types.gen.js';
import type { FieldConfig, Options as TimeSeries } from '${TYPES}/composable/timeseries/panelcfg/x/types.gen.js';

/** In JSON a value of an enum is its text. */
type Plain<T> = T extends string ? \`\${T}\` : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;

interface Target {
  refId: string;
  datasource: DataSourceRef;
  expr: string;
  legendFormat: string;
  editorMode: 'code';
  format?: 'heatmap';
  instant?: boolean;
  range?: boolean;
}
type Of<Type extends string, Options, Custom = Record<string, unknown>> = Plain<Omit<Panel, 'type' | 'options' | 'targets' | 'fieldConfig'>> & {
  type: Type;
  options: Plain<Options>;
  targets: Target[];
  fieldConfig: { defaults: Plain<Omit<NonNullable<Panel['fieldConfig']>['defaults'], 'custom'>> & { custom?: Plain<Custom> }; overrides: NonNullable<Panel['fieldConfig']>['overrides'] };
};
type OwnPanel = Plain<RowPanel> | Of<'heatmap', Heatmap> | Of<'stat', Stat> | Of<'timeseries', TimeSeries, FieldConfig>;

export const dashboard: Plain<Omit<Dashboard, 'panels'>> & { panels: OwnPanel[] } = `;

/** @returns the mistakes; '' if there are none */
export function compileDashboard(owner: Owner, json: string): string {
  const folder = temporaryFolder(owner);
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  writeFileSync(join(folder, 'dashboard.ts'), `${PROGRAM}${json};\n`);
  const compilerOptions = {
    module: 'nodenext',
    target: 'esnext',
    noEmit: true,
    strict: true,
    skipLibCheck: true,
    types: [],
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }));
  const tsc = join(projectRoot, 'node_modules/.bin/tsc');
  return spawnSync(tsc, ['-p', folder], { encoding: 'utf8' }).stdout;
}
