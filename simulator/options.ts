import { changedSettings, DEFAULT_SETTINGS, type RangeMs, type Settings } from './settings.js';
import type { After, NowMs } from './timers.js';

/** The start options of a simulator. */
export interface SimulatorOptions {
  /** 127.0.0.1 by default. */
  host?: string;
  /** Any free port by default. */
  port?: number;
  apiKey?: string;
  /** Its URL for others, if it is not where it listens. */
  publicUrl?: string;
  /** Seeds all randomness, including ids. Random by default, because a service stores the ids of earlier runs. */
  seed?: number;
  nowMs?: NowMs;
  after?: After;
  /** Settings that differ from the defaults. */
  settings?: Partial<Settings>;
}

/** @throws Refusal that names an invalid setting */
export function settingsOf(options: SimulatorOptions): Settings {
  return changedSettings(DEFAULT_SETTINGS, options.settings ?? {});
}

/** Minimum calls, and seconds, of a limit. */
const LEAST = 1;

/** Reads SIMULATOR_… variables. @throws Error that names an invalid variable */
export function optionsFrom(env: Variables): SimulatorOptions {
  const settings: Partial<Settings> = {
    callsPerWindow: numberIn(env, 'SIMULATOR_CALLS_PER_MINUTE', LEAST) ?? DEFAULT_SETTINGS.callsPerWindow,
    windowSeconds: numberIn(env, 'SIMULATOR_WINDOW_SECONDS', LEAST) ?? DEFAULT_SETTINGS.windowSeconds,
    stepMs: numberIn(env, 'SIMULATOR_STEP_MS') ?? DEFAULT_SETTINGS.stepMs,
    latencyMs: rangeIn(env, 'SIMULATOR_LATENCY_MS') ?? DEFAULT_SETTINGS.latencyMs,
    webhookUrl: urlIn(env, 'SIMULATOR_WEBHOOK_URL') ?? DEFAULT_SETTINGS.webhookUrl,
    webhookSecret: env.SIMULATOR_WEBHOOK_SECRET ?? DEFAULT_SETTINGS.webhookSecret,
  };
  return {
    host: env.SIMULATOR_HOST,
    port: portIn(env, 'SIMULATOR_PORT') ?? 4010,
    apiKey: env.SIMULATOR_API_KEY,
    publicUrl: urlIn(env, 'SIMULATOR_PUBLIC_URL'),
    seed: numberIn(env, 'SIMULATOR_SEED'),
    settings,
  };
}

type Variables = Readonly<Record<string, string | undefined>>;

/** @param least the minimum */
function numberIn(env: Variables, name: string, least = 0): number | undefined {
  const text = env[name];
  if (text === undefined || text === '') return undefined;
  const value = Number(text);
  if (!(value >= least && Number.isFinite(value))) throw new Error(`${name} must be a number of at least ${least}.`);
  return value;
}

function portIn(env: Variables, name: string): number | undefined {
  const port = numberIn(env, name);
  if (port !== undefined && !(Number.isInteger(port) && port <= 65_535)) {
    throw new Error(`${name} must be a port from 1 to 65535, or 0 for any free port.`);
  }
  return port;
}

function urlIn(env: Variables, name: string): string | undefined {
  const text = env[name];
  if (text === undefined || text === '') return undefined;
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) {
    throw new Error(`${name} must be a URL such as http://127.0.0.1:3000/webhooks/platform.`);
  }
  return text;
}

function rangeIn(env: Variables, name: string): RangeMs | undefined {
  const text = env[name];
  if (text === undefined || text === '') return undefined;
  const [, min, max = min] = /^(\d+)(?:-(\d+))?$/.exec(text) ?? [];
  if (min === undefined || Number(min) > Number(max)) {
    throw new Error(`${name} must be milliseconds such as 200 or 20-1000.`);
  }
  return [Number(min), Number(max)];
}
