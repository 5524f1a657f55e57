import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { load, YAML11_SCHEMA } from 'js-yaml';
import { intersects, minVersion, satisfies } from 'semver';
import { validateEnv } from '../src/config/env.js';
import { shutdownDeadlineMs } from '../src/config/stopping.js';

interface ComposeService {
  environment?: Record<string, unknown>;
  command?: string[];
  depends_on?: Record<string, { condition: string }>;
  healthcheck?: { test: string[] };
  stop_grace_period?: string;
  image?: string;
  user?: string;
  [limit: string]: unknown;
}

interface LockedPackage {
  version: string;
  engines?: { node?: string };
  dev?: boolean;
  devOptional?: boolean;
}

interface Bill {
  components: { 'bom-ref': string; name: string }[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

const ROOT = path.resolve(__dirname, '..');
const read = (file: string) => readFileSync(path.join(ROOT, file), 'utf8');
const manifest = JSON.parse(read('package.json'));
const { services } = load(read('docker-compose.yml'), { schema: YAML11_SCHEMA }) as {
  services: Record<string, ComposeService>;
};
const service = (name: string): ComposeService => services[name] ?? {};
const dockerfile = read('Dockerfile');

/** Settings of compose alone: they become part of addresses. */
const PASSWORDS = ['POSTGRES_PASSWORD', 'SERVICE_PASSWORD', 'REDIS_PASSWORD'];
const OF_COMPOSE = [...PASSWORDS, 'NODE_IMAGE', 'POSTGRES_IMAGE', 'REDIS_IMAGE'];

const examples = [...read('.env.example').matchAll(/^(?:# )?([A-Z][A-Z_]+)=(.*)$/gm)]
  .map(([, name = '', value = '']) => [name, value] as const)
  .filter(([name]) => !OF_COMPOSE.includes(name) && !/_(FILE|COMMAND)$/.test(name));
const known = ['src/config/env.ts', 'src/config/sign-in-settings.ts'].flatMap((file) =>
  [...read(file).matchAll(/^ {2}(?:@.*\) )?([A-Z][A-Z_]+)[!?]?: /gm)].map(([, name = '']) => name),
);

describe('.env.example', () => {
  it('shows every setting that the service has, and no other', () => {
    expect(examples.map(([name]) => name).sort()).toEqual(known.sort());
  });

  it('has examples that the service accepts', () => {
    const secrets = {
      PLATFORM_API_KEY: 'key',
      PLATFORM_WEBHOOK_SECRET: 'a-secret-of-the-notebridge-deployment',
      ADMIN_API_KEY: 'a-first-key-of-the-deployment-tests',
    };
    const filled = Object.fromEntries(examples.filter(([, value]) => value));
    expect(() => validateEnv({ ...filled, ...secrets })).not.toThrow();
  });
});

describe('docker-compose.yml', () => {
  it.each(['api', 'worker', 'migrate'])('gives the %s only settings that the service has', (name) => {
    const settings = Object.keys(service(name).environment ?? {});
    expect(settings.filter((setting) => !known.includes(setting) && !PASSWORDS.includes(setting))).toEqual([]);
  });

  it.each(['api', 'worker'])('starts the %s after the migrations, in its role', (name) => {
    expect(service('migrate').command).toEqual(['node', 'dist/src/main.js', 'migrate']);
    expect(service(name).depends_on?.migrate?.condition).toBe('service_completed_successfully');
    expect(service(name).environment?.ROLES).toBe(name);
  });

  it.each(['api', 'worker'])('keeps the owner of the tables from the %s, which has another role', (name) => {
    const { environment = {} } = service(name);
    const { environment: ofMigrate = {} } = service('migrate');
    const role = (address: unknown) => new URL(String(address).replace(/\$\{[^}]*\}/g, 'x')).username;
    expect(role(environment.DATABASE_URL)).toBe('notebridge_service');
    for (const setting of ['DATABASE_OWNER_URL', ...PASSWORDS]) expect(environment[setting]).toBe('');
    expect(role(ofMigrate.DATABASE_OWNER_URL)).toBe(service('postgres').environment?.POSTGRES_USER);
    expect(ofMigrate.DATABASE_URL).toBe(environment.DATABASE_URL);
  });

  it('creates that role with the database', () => {
    const { volumes, environment } = service('postgres');
    expect(volumes).toContain('./prisma/roles.sql:/docker-entrypoint-initdb.d/roles.sql:ro');
    expect(environment).toHaveProperty('SERVICE_PASSWORD');
    expect(read('prisma/roles.sql')).toMatch(/^\\getenv password SERVICE_PASSWORD$/m);
  });

  it.each(['api', 'worker'])('lets the %s finish its longest delay and call when it stops', (name) => {
    const { environment, stop_grace_period: grace } = service(name);
    const longest = (setting: string) =>
      Number(new RegExp(`@Seconds\\([\\d.]+, (\\d+)\\) ${setting}`).exec(read('src/config/env.ts'))?.[1]);
    const delay = String(environment?.SHUTDOWN_DELAY_SECONDS);
    const deadline = shutdownDeadlineMs({
      SHUTDOWN_DELAY_SECONDS: /^\d+$/.test(delay) ? Number(delay) : longest('SHUTDOWN_DELAY_SECONDS'),
      PLATFORM_TIMEOUT_SECONDS: longest('PLATFORM_TIMEOUT_SECONDS'),
    });
    expect(Number(/^(\d+)s$/.exec(grace ?? '')?.[1]) * 1_000).toBeGreaterThan(deadline);
  });

  it.each(Object.keys(services))('confines %s: no root, read-only, no capabilities, with limits', (name) => {
    expect(service(name)).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      mem_limit: expect.anything(),
      cpus: expect.anything(),
      pids_limit: expect.anything(),
    });
    if (service(name).image !== 'notebridge') expect(service(name).user).toBe(name);
  });

  it.each(['postgres', 'redis', 'api', 'worker'])('checks the health of %s', (name) => {
    const test = service(name).healthcheck?.test ?? [];
    expect(test[0]).toBe('CMD');
    if (service(name).image === 'notebridge') expect(test.at(-1)).toContain('/health/ready');
  });

  it('keeps the jobs of Redis, behind its password', () => {
    const command = String(service('redis').command);
    for (const part of ['--appendonly yes', 'noeviction', 'requirepass $$REDISCLI_AUTH'])
      expect(command).toContain(part);
  });

  it('lets each image be pinned by digest', () => {
    for (const name of ['postgres', 'redis'])
      expect(service(name).image).toMatch(new RegExp(`^\\$\\{${name.toUpperCase()}_IMAGE:-${name}:\\d+\\}$`));
    expect(dockerfile.match(/^FROM (?!\$\{NODE_IMAGE\})/gm)).toBeNull();
  });
});

describe('the image', () => {
  const [last = ''] = dockerfile.split(/^FROM /m).slice(-1);

  it('holds the service, its console, command and migrations, and runs as another user than root', () => {
    const copied = [...last.matchAll(/^COPY (?:--from=\w+ )?\S+ (\S+)$/gm)].map(([, target]) => target);
    expect(copied.sort()).toEqual([
      './',
      'bin',
      'dist/console',
      'dist/src',
      'node_modules',
      'prisma/migrations',
      'prisma/roles.sql',
    ]);
    expect(last).toMatch(/^USER node$/m);
    expect(dockerfile).toMatch(/ AS packages\n(?:.*\n)*?RUN npm ci .*--omit=dev --omit=optional/);
  });
});

describe('the packages', () => {
  const locked: Record<string, LockedPackage> = JSON.parse(read('package-lock.json')).packages;
  const shipped = Object.entries(locked).filter(([place, { dev, devOptional }]) => place && !dev && !devOptional);
  const floor = minVersion(manifest.engines.node)?.version ?? '';
  const misfits = (holds: (range: string) => boolean) =>
    shipped.filter(([, { engines }]) => engines?.node !== undefined && !holds(engines.node)).map(([place]) => place);

  it('run no script while they are installed', () => {
    expect(read('.npmrc')).toMatch(/^ignore-scripts=true$/m);
    const installs = [...dockerfile.matchAll(/npm ci.*/g), ...read('scripts/setup.mjs').matchAll(/'ci',[^\]]*/g)];
    expect(installs.map(([line]) => line.includes('--ignore-scripts'))).toEqual([true, true, true]);
    expect(Object.values(manifest.allowScripts)).not.toContain(true);
  });

  it('work on the oldest Node that package.json and the README name, and on that of the image', () => {
    const [major, minor] = floor.split('.');
    const image = `${/^ARG NODE_IMAGE=node:(\d+)-/m.exec(dockerfile)?.[1]}.x`;
    expect(misfits((range) => satisfies(floor, range))).toEqual([]);
    expect(misfits((range) => intersects(image, range))).toEqual([]);
    expect(intersects(image, manifest.engines.node)).toBe(true);
    expect(read('README.md')).toContain(`Node ${major}.${minor} or later`);
    expect(manifest.devDependencies['@types/node']).toMatch(new RegExp(`^${major}\\.${minor}\\.`));
  });

  it('are all in the bill of materials, with what they depend on', () => {
    const { billOfMaterials } = require('../scripts/sbom.mjs') as { billOfMaterials: (root: string) => Bill };
    const { components, dependencies } = billOfMaterials(ROOT);
    const references = new Set(dependencies.map(({ ref }) => ref));
    const named = new Set(components.map(({ name }) => name));
    expect(
      shipped.map(([place]) => place.split('node_modules/').at(-1)).filter((name) => !named.has(name ?? '')),
    ).toEqual([]);
    expect(named).toContain('react-dom'); // within the pages of the console
    expect(references.size).toBe(components.length + 1);
    for (const { dependsOn } of dependencies) for (const each of dependsOn) expect(references).toContain(each);
  });
});

describe('ARCHITECTURE.md', () => {
  const foldersIn = (place: string) =>
    readdirSync(path.join(ROOT, place), { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && entry.name !== 'generated')
      .map(({ name }) => name);
  const modules = [...read('ARCHITECTURE.md').matchAll(/^\| `([a-z-]+)` +\| ([a-z, -]*)\|/gm)].map(
    ([, name = '', folders = '']) => ({ name, folders: folders.split(', ').flatMap((each) => each.trim() || []) }),
  );

  it('lists the modules of src and their folders', () => {
    expect(modules.map(({ name }) => name).sort()).toEqual(foldersIn('src').sort());
    for (const { name, folders } of modules)
      expect([name, foldersIn(`src/${name}`).sort()]).toEqual([name, folders.sort()]);
  });
});

test('no folder holds more than 14 source files, except flat ones', () => {
  const flat = ['bench', 'harness', 'scripts', 'test', 'test/support'];
  const counts: Record<string, number> = {};
  for (const root of [...flat.slice(0, 4), 'console', 'demo', 'faults', 'prisma', 'simulator', 'src']) {
    for (const { parentPath, name } of readdirSync(path.join(ROOT, root), { withFileTypes: true, recursive: true })) {
      const isSource = /\.(ts|tsx|mjs|cjs|css|html)$/.test(name) && !/\.spec(-support)?\.tsx?$/.test(name);
      const place = path.relative(ROOT, parentPath);
      if (isSource && !/generated|node_modules/.test(place)) counts[place] = (counts[place] ?? 0) + 1;
    }
  }
  const full = Object.entries(counts).flatMap(([place, count]) => (count > 14 ? place : []));
  expect(full.filter((place) => !flat.includes(place))).toEqual([]);
});
