/**
 * What the machine itself does to the victim's figures: all parties share its cores. The victim's requests go straight
 * to the upstream that the attack reaches, and to a second one that nobody else asks. What is slow there as well is not
 * the target's fault.
 */
import { quantile } from '../statistics.ts';
import { VICTIM_ADDRESS } from './addresses.ts';
import { type Victim, victimOf, visit } from './victim.ts';

const PER_SECOND = 20;

export interface ControlFigures {
  /** Past the target, to the same upstream. */
  readonly upstreamP99Ms: number;
  /** To a server that has nothing else to do. */
  readonly machineP99Ms: number;
}

export async function visitControls(
  ports: { readonly upstream: number; readonly bystander: number },
  seconds: number,
): Promise<ControlFigures> {
  const control: Victim = {
    ...victimOf('stranger', 'fbk_valid_control'),
    address: VICTIM_ADDRESS,
    perSecond: PER_SECOND,
    uploadEvery: 0,
  };
  const [upstream, machine] = await Promise.all([
    visit(control, ports.upstream, seconds),
    visit(control, ports.bystander, seconds),
  ]);
  return {
    upstreamP99Ms: quantile(upstream.latenciesMs, 0.99),
    machineP99Ms: quantile(machine.latenciesMs, 0.99),
  };
}
