/** Ends when its parent is gone or says so; asks the API a last time, as a gateway that drains does. */
let isStopping = false;
async function stop(why) {
  if (isStopping) return;
  isStopping = true;
  const status = await fetch(`${process.env.GATEWAY_UPSTREAM}/health`).then(
    (reply) => reply.status,
    () => 'nothing',
  );
  console.log(`gateway ends by ${why}, API says ${status}`);
  process.exit(0);
}
process.on('SIGTERM', () => stop('SIGTERM'));
process.on('SIGINT', () => stop('SIGINT'));
process.on('disconnect', () => stop('disconnect'));
setInterval(() => {}, 1000);
const { GATEWAY_UPSTREAM, MALLOC_ARENA_MAX } = process.env;
console.log(`gateway ready, upstream ${GATEWAY_UPSTREAM} pid ${process.pid} arenas ${MALLOC_ARENA_MAX}`);
process.send('ready');
