/** The options of a soak. */
export interface SoakOptions {
  readonly minutes: number;
  /** The seed of all random choices. */
  readonly seed: number;
  readonly queue: 'postgres' | 'redis';
}

export const USAGE = 'npm run soak -- [--hours 8 | --minutes 45] [--seed N] [--queue postgres|redis]';

const HOUR = 60;
const DEFAULT_MINUTES = 8 * HOUR;
const MAX_MINUTES = 7 * 24 * HOUR;

const READERS: Record<string, (value: string) => Partial<SoakOptions> | undefined> = {
  '--hours': (value) => minutes(value, HOUR),
  '--minutes': (value) => minutes(value, 1),
  '--seed': (value) => (/^\d{1,15}$/.test(value) ? { seed: Number(value) } : undefined),
  '--queue': (value) => (value === 'postgres' || value === 'redis' ? { queue: value } : undefined),
};

/**
 * Reads the command line.
 *
 * @param chosen the seed and the queue where none is given
 * @throws {Error} one sentence that names the word at fault
 */
export function readOptions(words: readonly string[], chosen: Pick<SoakOptions, 'seed' | 'queue'>): SoakOptions {
  let options: SoakOptions = { minutes: DEFAULT_MINUTES, ...chosen };
  for (let at = 0; at < words.length; at += 2) {
    const [name = '', value] = [words[at], words[at + 1]];
    const read = Object.hasOwn(READERS, name) ? READERS[name] : undefined;
    if (!read) throw new Error(`Unknown argument ${name}: ${USAGE}`);
    const given = value === undefined ? undefined : read(value);
    if (!given) throw new Error(`${name} can't be ${value ?? 'nothing'}: ${USAGE}`);
    options = { ...options, ...given };
  }
  return options;
}

/** The command that runs a soak again. */
export const replayCommand = ({ minutes, seed, queue }: SoakOptions): string =>
  `npm run soak -- --minutes ${minutes} --seed ${seed} --queue ${queue}`;

function minutes(value: string, each: number): Partial<SoakOptions> | undefined {
  const asked = /^\d{1,4}(\.\d{1,3})?$/.test(value) ? Number(value) * each : 0;
  return asked > 0 && asked <= MAX_MINUTES ? { minutes: asked } : undefined;
}
