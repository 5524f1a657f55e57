// The order in which Jest starts the suites: those that wait for processes first, because a slow suite that starts last
// runs alone. Within a layer, Jest starts the longest suites first, or the largest files while their times are unknown.
import Sequencer from '@jest/test-sequencer';

/** The layers by the names of their Jest projects. */
const LAYERS = ['process', 'world', 'unit'];

const layerOf = ({ context }) => LAYERS.indexOf(context.config.displayName?.name);

export default class LayerSequencer extends Sequencer {
  sort(tests) {
    return super.sort(tests).sort((one, other) => layerOf(one) - layerOf(other));
  }
}
