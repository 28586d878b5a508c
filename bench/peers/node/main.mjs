/** Runs one peer: `node main.mjs SETTINGS`. */
const settings = JSON.parse(process.argv[2]);
const { start } = await import(`./${settings.name}.mjs`);
await start(settings);
console.log('ready');
process.on('SIGTERM', () => process.exit(0));
