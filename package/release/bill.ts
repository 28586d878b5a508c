/** The list of contents (SBOM) of a program, in the CycloneDX format. */
import { execFileSync } from 'node:child_process';

interface Bill {
  serialNumber?: string;
  readonly metadata: { timestamp: string; tools?: unknown };
  readonly components: unknown[];
}

/**
 * @param folder has package.json and package-lock.json
 * @param date of the release, as YYYY-MM-DD: the time of the run and its random number would change with each run
 * @param node version of the Node.js that is delivered with the program
 */
export function billOf(folder: string, date: string, node: string): string {
  const args = ['sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'application', '--package-lock-only'];
  const bill: Bill = JSON.parse(execFileSync('npm', args, { cwd: folder, encoding: 'utf8' }));
  delete bill.serialNumber;
  delete bill.metadata.tools;
  bill.metadata.timestamp = `${date}T00:00:00.000Z`;
  bill.components.push({
    'bom-ref': `node@${node}`,
    type: 'platform',
    name: 'node',
    version: node,
    purl: `pkg:generic/node@${node}`,
    externalReferences: [{ type: 'website', url: 'https://nodejs.org/' }],
  });
  return `${JSON.stringify(bill, null, 2)}\n`;
}
