/** The options of a fault run. */
export interface Options {
  /** Names of scenarios; empty: all of them. */
  readonly only: readonly string[];
  /** Seed of all random choices. */
  readonly seed: number;
  /** About how long the run may take on two cores, one scenario at a time; undefined: no limit. */
  readonly minutes?: number;
  /** The share of each scenario to run, in (0, 1]; undefined: what the minutes allow. */
  readonly share?: number;
  /** The store of the queues; if undefined, the seed decides for each scenario. */
  readonly queue?: 'postgres' | 'redis';
  /** Scenarios that run at the same time. */
  readonly atOnce: number;
}

export const USAGE = `npm run faults -- [--minutes N | --share 0.1] [--only NAME[,NAME]] [--seed N] [--queue postgres|redis] [--at-once N]
npm run faults -- --stores [NAME]`;

const READERS: Record<string, (value: string) => Partial<Options> | undefined> = {
  '--only': (value) => ({ only: value.split(',').filter(Boolean) }),
  '--seed': (value) => (/^\d{1,15}$/.test(value) ? { seed: Number(value) } : undefined),
  '--minutes': (value) =>
    /^\d{1,3}(\.\d+)?$/.test(value) && Number(value) > 0 ? { minutes: Number(value) } : undefined,
  '--share': (value) => (/^(0\.\d+|1)$/.test(value) && Number(value) > 0 ? { share: Number(value) } : undefined),
  '--at-once': (value) => (/^[1-8]$/.test(value) ? { atOnce: Number(value) } : undefined),
  '--queue': (value) => (value === 'postgres' || value === 'redis' ? { queue: value } : undefined),
};

/**
 * Reads the command line.
 *
 * @param seed the default of --seed
 * @throws {Error} one sentence that names the wrong argument
 */
export function readOptions(words: readonly string[], names: readonly string[], seed: number): Options {
  let options: Options = { only: [], seed, atOnce: 1 };
  for (let at = 0; at < words.length; at += 2) {
    const [name = '', value] = [words[at], words[at + 1]];
    const read = Object.hasOwn(READERS, name) ? READERS[name] : undefined;
    if (!read) throw new Error(`Unknown argument ${name}. Usage:\n${USAGE}`);
    const given = value === undefined ? undefined : read(value);
    if (!given) throw new Error(`${name} cannot be ${value ?? 'empty'}. Usage:\n${USAGE}`);
    options = { ...options, ...given };
  }
  const stranger = options.only.find((name) => !names.includes(name));
  if (stranger !== undefined) throw new Error(`Unknown scenario ${stranger}. The scenarios are: ${names.join(', ')}.`);
  return options;
}

/** The command that repeats one run of a scenario. */
export function replayCommand(name: string, seed: number, share: number, queue: 'postgres' | 'redis'): string {
  return `npm run faults -- --only ${name} --seed ${seed} --share ${share} --queue ${queue}`;
}
