// The order in which Jest starts the suites: world and process suites in turn, because a process suite waits more than it
// computes; then the unit suites. Of one kind, the longest start first (the largest files while their times are unknown),
// because a slow suite that starts last runs alone.
import Sequencer from '@jest/test-sequencer';

export default class LayerSequencer extends Sequencer {
  sort(tests) {
    const sorted = super.sort(tests);
    const of = (kind) => sorted.filter(({ context }) => context.config.displayName?.name === kind);
    const [processes, worlds] = [of('process'), of('world')];
    const inTurn = worlds.flatMap((world, at) => [...processes.slice(at, at + 1), world]);
    return [...inTurn, ...processes.slice(worlds.length), ...of('unit')];
  }
}
