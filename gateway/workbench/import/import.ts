/** Converts another product's configuration to a policy file. */
import { importEnvoy } from './envoy.ts';
import { ImportError, type Imported, type Product } from './imported.ts';
import { importKong, looksLikeKong } from './kong.ts';
import { importNginx } from './nginx.ts';
import { type PolicyText, policyText } from './policy-text.ts';
import { importRateLimitService } from './rate-limit-service.ts';
import { importTraefik } from './traefik.ts';
import { readTrees, type Tree } from './tree.ts';

export const PRODUCTS = [
  'envoy',
  'ratelimit',
  'nginx',
  'traefik',
  'kong',
] as const satisfies readonly Product[];

const NAMES: Readonly<Record<Product, string>> = {
  envoy: 'Envoy Gateway',
  ratelimit: 'envoyproxy/ratelimit',
  nginx: 'NGINX',
  traefik: 'Traefik',
  kong: 'Kong',
};
const BYTES_MAX = 4_194_304;

export interface ImportResult extends PolicyText {
  readonly from: Product;
}

/**
 * @param file its name, for comments
 * @param from null to recognize the product by the content
 * @throws ImportError with the mistake in the file
 */
export function importText(text: string, file: string, from: Product | null): ImportResult {
  if (Buffer.byteLength(text) > BYTES_MAX) throw new ImportError('it has more than 4 MiB; split it');
  if (from === 'nginx' || (from === null && looksLikeNginx(text)))
    return { from: 'nginx', ...policyText(importNginx(text), file, NAMES.nginx) };
  refuseForeignSyntax(text);
  const trees = readTrees(text);
  const product = from ?? productOf(trees);
  if (product === null)
    throw new ImportError(`it is none of ${Object.values(NAMES).join(', ')}; say which with --from`);
  return { from: product, ...policyText(importTrees(trees, product), file, NAMES[product]) };
}

/** @throws ImportError */
function refuseForeignSyntax(text: string): void {
  if (/^\s*\[{1,2}http\.\w+/m.test(text))
    throw new ImportError('TOML is not read; write the dynamic file of Traefik as YAML');
  // Outside of quotes, nothing else in a YAML file begins like this.
  if (/^[^#'"`]*\{\{-?\s*[.\w]/m.test(text))
    throw new ImportError('it is a template; give it what "helm template" makes of it');
}

function importTrees(trees: readonly Tree[], product: Exclude<Product, 'nginx'>): Imported {
  switch (product) {
    case 'envoy':
      return importEnvoy(trees);
    case 'ratelimit':
      return importRateLimitService(trees);
    case 'traefik':
      return importTraefik(trees);
    case 'kong':
      return importKong(trees);
    default:
      return product satisfies never;
  }
}

function looksLikeNginx(text: string): boolean {
  return (
    /^\s*(?:http|server|location\s[^{]*)\s*\{/m.test(text) || /^\s*limit_req(?:_zone)?\s[^;]*;/m.test(text)
  );
}

function productOf(trees: readonly Tree[]): Exclude<Product, 'nginx'> | null {
  if (trees.some((tree) => tree.at('descriptors').isPresent)) return 'ratelimit';
  if (trees.some(looksLikeKong)) return 'kong';
  const resources = trees.flatMap((tree) => [tree, ...tree.at('items').items()]);
  const kinds = new Set(resources.map((one) => one.at('kind').text));
  if (kinds.has('BackendTrafficPolicy')) return 'envoy';
  if (kinds.has('Middleware') || kinds.has('IngressRoute')) return 'traefik';
  return trees.some((tree) => tree.at('http').isPresent || tree.at('services').isPresent) ? 'traefik' : null;
}
