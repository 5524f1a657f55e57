import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { load, YAML11_SCHEMA } from 'js-yaml';
import { Env } from '../src/config/env.js';
import { SETTINGS } from '../src/config/env.validation.js';

const ROOT = path.resolve(__dirname, '..');

/** True for the name of a setting, or of its file. */
export const isSetting = (name: string): boolean => SETTINGS.includes(name.replace(/_FILE$/, ''));

/** The text of a file of the project. */
export const readProjectFile = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8');

/** The variables of an environment file. */
export const settingsIn = (text: string): Record<string, string> =>
  Object.fromEntries([...text.matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]));

/** The command and settings with which a deployment file starts a process. */
export interface Start {
  readonly command: readonly string[];
  readonly settings: Readonly<Record<string, string>>;
}

const parsed = (pattern: RegExp) =>
  JSON.parse(
    pattern.exec(
      readProjectFile('Dockerfile')
        .split(/^FROM /m)
        .at(-1) ?? '',
    )?.[1] ?? '',
  );
export const imageCommand = (): string[] => parsed(/^CMD (.*)$/m);
export const imageHealthCheck = (): string[] => parsed(/^HEALTHCHECK .*? CMD (.*)$/m);

export interface ComposeService {
  environment?: Record<string, string>;
  secrets?: string[];
  command?: string[];
  depends_on?: Record<string, { condition: string }>;
  healthcheck?: { test: string[] };
  stop_grace_period?: string;
  image?: string;
  user?: string;
  [limit: string]: unknown;
}

interface Compose {
  services: Record<string, ComposeService>;
  secrets: Record<string, { file: string }>;
}

export const compose = (): Compose => load(readProjectFile('docker-compose.yml'), { schema: YAML11_SCHEMA }) as Compose;

/** @param name of a service of docker-compose.yml that runs the image */
export function startOfCompose(name: string): Start {
  const { command = imageCommand(), environment = {} } = compose().services[name] ?? {};
  const settings = Object.entries(environment).map(([setting, value]) => [
    setting,
    String(value).replace(/\$\{\w+:-(.*)\}/, '$1'),
  ]);
  return { command, settings: Object.fromEntries(settings) };
}

/** A unit file. */
export interface Unit {
  values(key: string): string[];
  readonly start: Start;
}

/** @param name of a file in deploy/systemd */
export function systemdUnit(name: string): Unit {
  const lines = [...readProjectFile(`deploy/systemd/${name}.service`).matchAll(/^(\w+)=(.*)$/gm)];
  const values = (key: string) => lines.filter(([, each]) => each === key).map(([, , value = '']) => value);
  const pairs = values('Environment').flatMap((value) => value.split(' '));
  return {
    values,
    start: { command: values('ExecStart')[0]?.split(' ') ?? [], settings: settingsIn(pairs.join('\n')) },
  };
}

/** The secrets of an installation, in a dedicated folder, as an operator makes them. */
export class InstalledSecrets {
  private readonly base = mkdtempSync(path.join(os.tmpdir(), 'notebridge-secrets-'));
  readonly folder = path.join(this.base, 'secrets');
  /** The script's instructions for the operator. */
  readonly requests: string;

  /** @param own files that are written before the script runs, by name */
  constructor(own: Record<string, string> = {}) {
    mkdirSync(this.folder);
    for (const [name, value] of Object.entries(own)) writeFileSync(path.join(this.folder, name), value);
    this.requests = execFileSync(path.join(ROOT, 'deploy/make-secrets.sh'), { cwd: this.base, encoding: 'utf8' });
    for (const name of ['platform-api-key', 'platform-webhook-secret'])
      writeFileSync(path.join(this.folder, name), 'what-the-platform-gave-an-operator-9\n');
  }

  read(name: string): string {
    return readFileSync(path.join(this.folder, name), 'utf8');
  }

  /** Settings whose `…_FILE` name files of this folder, at any mount point of the deployment. */
  mountedIn(settings: Record<string, string>): Record<string, string> {
    const entries = Object.entries(settings).map(([name, value]) => {
      const file = path.join(this.folder, path.basename(value));
      return [name, name.endsWith('_FILE') && existsSync(file) ? file : value];
    });
    return Object.fromEntries(entries);
  }
}

const longestSeconds = (setting: string): number =>
  Number(new RegExp(`@Seconds\\([\\d.]+, (\\d+)\\)\\n +${setting} =`).exec(readProjectFile('src/config/env.ts'))?.[1]);

/** How long a shutdown may take. @param hasDelay false if the deployment sets SHUTDOWN_DELAY_SECONDS to 0 */
export function longestShutdownSeconds(hasDelay: boolean): number {
  const env = Object.assign(new Env(), {
    SHUTDOWN_DELAY_SECONDS: hasDelay ? longestSeconds('SHUTDOWN_DELAY_SECONDS') : 0,
    PLATFORM_TIMEOUT_SECONDS: longestSeconds('PLATFORM_TIMEOUT_SECONDS'),
  });
  return env.shutdownDeadlineMs / 1_000;
}
