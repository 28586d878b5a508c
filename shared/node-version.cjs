/**
 * Loaded before a program, in syntax that every Node.js understands. A version that cannot run TypeScript, and a checkout
 * without its packages, would fail with an unclear message. 24.7 is the first version with argon2.
 */
'use strict';
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 24 || (major === 24 && minor < 7)) {
  console.error(
    `Floodgate needs Node.js 24.7 or later, and this is ${process.versions.node}: install a newer one, or run "npm ci" without --omit=optional, which brings its own.`,
  );
  process.exit(1);
}
try {
  require.resolve('fastify');
} catch {
  console.error('The packages of Floodgate are not installed: run "npm ci" first.');
  process.exit(1);
}
