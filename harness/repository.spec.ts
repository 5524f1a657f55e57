import { readdirSync } from 'node:fs';
import path from 'node:path';
import { intersects, minVersion, satisfies } from 'semver';
import { SETTINGS, validateEnv } from '../src/config/env.validation.js';
import { readProjectFile as read } from './deployment-files.js';

interface LockedPackage {
  version: string;
  integrity?: string;
  resolved?: string;
  inBundle?: boolean;
  engines?: { node?: string };
  dev?: boolean;
  devOptional?: boolean;
}

const ROOT = path.resolve(__dirname, '..');
const manifest = JSON.parse(read('package.json'));
const dockerfile = read('Dockerfile');

const examples = [...read('.env.example').matchAll(/^(?:# )?([A-Z][A-Z_]+)=(.*)$/gm)]
  .map(([, name = '', value = '']) => [name, value] as const)
  .filter(([name]) => !/_(FILE|IMAGE)$/.test(name));

describe('.env.example', () => {
  it('shows every setting that the service has, and no other', () => {
    expect(examples.map(([name]) => name)).toEqual(SETTINGS);
  });

  it('has examples that the service accepts', () => {
    const key = `k1:${Buffer.alloc(32, 7).toString('base64')}`;
    const secrets = {
      PLATFORM_API_KEY: 'key',
      PLATFORM_WEBHOOK_SECRET: 'a-secret-of-the-notebridge-deployment',
      ADMIN_API_KEY: 'a-first-key-of-the-deployment-tests',
      DATABASE_URL: 'postgresql://127.0.0.1/notebridge',
      DATA_KEYS: key,
      FINGERPRINT_KEYS: key,
      AUDIT_KEYS: key,
    };
    const filled = Object.fromEntries(examples.filter(([, value]) => value));
    expect(() => validateEnv({ ...filled, ...secrets })).not.toThrow();
  });
});

describe('the packages', () => {
  const locked: Record<string, LockedPackage> = JSON.parse(read('package-lock.json')).packages;
  const shipped = Object.entries(locked).filter(([place, { dev, devOptional }]) => place && !dev && !devOptional);
  const floor = minVersion(manifest.engines.node)?.version ?? '';
  const misfits = (holds: (range: string) => boolean) =>
    shipped.filter(([, { engines }]) => engines?.node !== undefined && !holds(engines.node)).map(([place]) => place);

  it('run no install scripts', () => {
    expect(read('.npmrc')).toMatch(/^ignore-scripts=true$/m);
    const installs = [...dockerfile.matchAll(/npm ci.*/g)]; // without .npmrc
    expect(installs.map(([line]) => line.includes('--ignore-scripts'))).toEqual([true, true]);
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

  it('have a checksum and come from the registry', () => {
    const REGISTRY = 'https://registry.npmjs.org/';
    const faults = Object.entries(locked).flatMap(([place, { integrity = '', resolved = REGISTRY, inBundle }]) => {
      if (place === '' || inBundle) return []; // the archive that contains it has the checksum
      return /^sha512-[\w+/]{86}==$/.test(integrity) && resolved.startsWith(REGISTRY) ? [] : [place];
    });
    expect(faults).toEqual([]);
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

  it('shows code as it is', () => {
    const plain = (text: string) => text.replace(/\s+/g, ' ');
    const shown = [...read('ARCHITECTURE.md').matchAll(/```ts\n\/\/ (\S+)\n([\s\S]*?)\n```/g)];
    expect(shown.length).toBeGreaterThan(0);
    for (const [, file = '', code = ''] of shown) expect(plain(read(file))).toContain(plain(code));
  });
});

test('no folder has more than 14 source files, except flat ones', () => {
  const flat = ['bench', 'harness', 'scripts', 'test', 'test/support'];
  const counts: Record<string, number> = {};
  for (const root of [...flat.slice(0, 4), 'client', 'console', 'demo', 'faults', 'prisma', 'simulator', 'src']) {
    for (const { parentPath, name } of readdirSync(path.join(ROOT, root), { withFileTypes: true, recursive: true })) {
      const isSource = /\.(ts|tsx|mjs|cjs|css|html)$/.test(name) && !/\.spec(-support)?\.tsx?$/.test(name);
      const place = path.relative(ROOT, parentPath);
      if (isSource && !/generated|node_modules/.test(place)) counts[place] = (counts[place] ?? 0) + 1;
    }
  }
  const full = Object.entries(counts).flatMap(([place, count]) => (count > 14 ? place : []));
  expect(full.filter((place) => !flat.includes(place))).toEqual([]);
});
