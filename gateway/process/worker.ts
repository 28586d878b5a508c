/** The worker's side of the supervisor: its reports, and what it does on request. */
import type { RefusedAddresses } from '#gateway/addresses/addresses.ts';
import type { Row } from '#gateway/bans/rows.ts';
import { families } from '#gateway/observe/metrics/exposition.ts';
import type { Sample } from '#gateway/part/sample.ts';
import type { ProcessReport, WorkerMessage, WorkerRequest } from './supervisor.ts';
import { TICK_MS } from './worker-pool.ts';

/** The parts of a gateway that a supervisor uses. */
interface SupervisedGateway {
  readonly addresses: RefusedAddresses | null;
  applyChange(row: Row): Promise<void>;
  report(withRankings: boolean): ProcessReport;
  samples(): Sample[];
}

/** The channel to the supervisor. */
interface Channel {
  readonly connected: boolean;
  readonly send?: (message: WorkerMessage) => unknown;
  on(event: 'message', listener: (request: WorkerRequest) => void): unknown;
}

/** Reports to the supervisor regularly, and when it asks. */
export function reportTo(supervisor: Channel, gateway: SupervisedGateway): void {
  const sendState = (id: number): void => {
    // If the supervisor is gone, the 'disconnect' handler stops this worker.
    if (!supervisor.connected) return;
    supervisor.send?.({
      type: 'state',
      id,
      families: families(gateway.samples()),
      addresses: gateway.addresses?.fresh() ?? [],
      // Regular reports (id 0) do not need the clients denied most often.
      ...gateway.report(id !== 0),
    });
  };
  supervisor.on('message', async (request) => {
    const { id } = request;
    if (request.type === 'state') {
      sendState(id);
      return;
    }
    await gateway.applyChange(request.row);
    if (supervisor.connected) supervisor.send?.({ type: 'applied', id });
  });
  // If the worker dies, the counts since its last report are lost.
  setInterval(() => sendState(0), TICK_MS).unref();
}
