/** `node --require` of this: the process says at its end what it loaded, and whether it asked for the words of a language. */
const { registerHooks } = require('node:module');

const loaded = new Set();
registerHooks({
  load(url, context, next) {
    loaded.add(url);
    return next(url, context);
  },
});
for (const [owner, name] of [
  [Number.prototype, 'toLocaleString'],
  [String.prototype, 'localeCompare'],
]) {
  const original = owner[name];
  owner[name] = function (...args) {
    loaded.add(`language:${name}`);
    return original.apply(this, args);
  };
}
for (const name of ['Collator', 'DateTimeFormat', 'NumberFormat'])
  Intl[name] = new Proxy(Intl[name], {
    construct(target, args, newTarget) {
      loaded.add(`language:${name}`);
      return Reflect.construct(target, args, newTarget);
    },
  });
process.on('exit', () => {
  const all = [...loaded, ...process.moduleLoadList];
  process.stdout.write(`\nLoaded ${JSON.stringify(all)}\n`);
});
