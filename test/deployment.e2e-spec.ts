import { readFileSync } from 'node:fs';
import path from 'node:path';
import { load, YAML11_SCHEMA } from 'js-yaml';
import { validateEnv } from '../src/config/env.js';

interface Service {
  environment?: Record<string, unknown>;
  command?: string[];
  depends_on?: Record<string, { condition: string }>;
  healthcheck?: unknown;
}

const read = (file: string): string => readFileSync(path.resolve(__dirname, '..', file), 'utf8');
const compose = load(read('docker-compose.yml'), { schema: YAML11_SCHEMA }) as { services: Record<string, Service> };
const service = (name: string): Service => compose.services[name] ?? {};

/** Compose's own: it becomes part of DATABASE_URL. */
const NOT_OURS = ['POSTGRES_PASSWORD'];

const examples = new Map(
  [...read('.env.example').matchAll(/^(?:# )?([A-Z][A-Z_]+)=(.*)$/gm)].map(([, name = '', value = '']) => [
    name,
    value,
  ]),
);
const known = [...read('src/config/env.ts').matchAll(/^ {2}([A-Z][A-Z_]+)[!?]?:/gm)].map(([, name = '']) => name);

describe('the production set', () => {
  it('shows every setting in .env.example, and none that the service does not know', () => {
    expect([...examples.keys()].filter((name) => !NOT_OURS.includes(name)).sort()).toEqual(known.sort());
  });

  it('has examples that the service accepts', () => {
    const filled = Object.fromEntries([...examples].filter(([, value]) => value));
    const secrets = { PLATFORM_API_KEY: 'key', PLATFORM_WEBHOOK_SECRET: 'secret', ADMIN_API_KEY: 'a'.repeat(16) };
    expect(() => validateEnv({ ...filled, ...secrets })).not.toThrow();
  });

  it('sets in docker-compose.yml only what the service knows', () => {
    for (const name of ['api', 'worker', 'migrate']) {
      const unknown = Object.keys(service(name).environment ?? {}).filter((setting) => !known.includes(setting));
      expect(unknown).toEqual([]);
    }
  });

  it('migrates before api and worker start, on a Redis that keeps its jobs', () => {
    expect(service('migrate').command).toEqual(['node', 'dist/src/main.js', 'migrate']);
    for (const name of ['api', 'worker']) {
      expect(service(name).depends_on?.migrate?.condition).toBe('service_completed_successfully');
      expect(service(name).environment?.ROLES).toBe(name);
    }
    expect(service('redis').command).toEqual(expect.arrayContaining(['--appendonly', 'yes', 'noeviction']));
  });

  it('has every store, the api and the worker watched for their health', () => {
    for (const name of ['postgres', 'redis', 'api', 'worker']) expect(service(name).healthcheck).toBeDefined();
  });
});
