import { readFileSync } from 'node:fs';
import path from 'node:path';
import { load, YAML11_SCHEMA } from 'js-yaml';

export interface ComposeService {
  environment?: Record<string, unknown>;
  command?: string[];
  depends_on?: Record<string, { condition: string }>;
  healthcheck?: { test: string[] };
  stop_grace_period?: string;
  image?: string;
  user?: string;
  read_only?: boolean;
  cap_drop?: string[];
  security_opt?: string[];
  mem_limit?: string;
  cpus?: number;
  pids_limit?: number;
  volumes?: string[];
}

export type ComposeFile = Record<string, unknown> & { services: Record<string, ComposeService> };

/** docker-compose.yml with its anchors merged. */
export function readCompose(): ComposeFile {
  const text = readFileSync(path.resolve(__dirname, '../../docker-compose.yml'), 'utf8');
  return load(text, { schema: YAML11_SCHEMA }) as ComposeFile;
}

/** The settings of .env.example, and whether each is set there or only shown in a comment. */
export function exampleSettings(): { name: string; value: string; isSet: boolean }[] {
  const text = readFileSync(path.resolve(__dirname, '../../.env.example'), 'utf8');
  return [...text.matchAll(/^(# )?([A-Z][A-Z_]+)=(.*)$/gm)].map(([, comment, name = '', value = '']) => ({
    name,
    value,
    isSet: comment === undefined,
  }));
}

/**
 * Puts settings into a value as Compose does (Compose specification, "Interpolation").
 *
 * @throws Error where one is required and not set, or where the form is none that this project uses
 */
export function interpolate(value: string, settings: Record<string, string>): string {
  return value.replace(/\$(?:\$|\{(\w+)(?:(:[?-])([^}]*))?\})/g, (whole, name?: string, kind?: string, more = '') => {
    if (whole === '$$') return '$';
    const set = settings[name ?? ''];
    if (set) return set;
    if (kind === ':-') return more;
    throw new Error(`docker-compose.yml needs ${name}: ${more}`);
  });
}

/** The whole environment that Compose gives a service: env_file, and over it its own. */
export function environmentOf(service: ComposeService, settings: Record<string, string>): Record<string, string> {
  const own = Object.entries(service.environment ?? {});
  return {
    ...settings,
    ...Object.fromEntries(own.map(([name, value]) => [name, interpolate(String(value), settings)])),
  };
}
