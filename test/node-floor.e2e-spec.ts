import { readFileSync } from 'node:fs';
import path from 'node:path';
import { intersects, minVersion, satisfies } from 'semver';

interface LockedPackage {
  version: string;
  engines?: { node?: string };
  dev?: boolean;
  devOptional?: boolean;
}

const read = (file: string): string => readFileSync(path.resolve(__dirname, '..', file), 'utf8');
const engines: string = JSON.parse(read('package.json')).engines.node;
const floor = minVersion(engines)?.version ?? '';
const locked: Record<string, LockedPackage> = JSON.parse(read('package-lock.json')).packages;
const ofProduction = Object.entries(locked).filter(([place, { dev, devOptional }]) => place && !dev && !devOptional);

/** The packages of production whose engines do not hold, as npm would warn of them. */
const misfits = (holds: (range: string) => boolean): string[] =>
  ofProduction
    .filter(([, { engines: asked }]) => asked?.node !== undefined && !holds(asked.node))
    .map(([place, { version, engines: asked }]) => `${place} ${version} asks for Node ${asked?.node}`);

describe('the oldest Node that is promised', () => {
  it('is enough for every package of production', () => {
    expect(ofProduction.length).toBeGreaterThan(100);
    expect(misfits((range) => satisfies(floor, range))).toEqual([]);
  });

  it('is the same in the README, package.json and the types', () => {
    const [major, minor] = floor.split('.');
    expect(read('README.md')).toContain(`Node ${major}.${minor} or later`);
    expect(JSON.parse(read('package.json')).devDependencies['@types/node']).toMatch(
      new RegExp(`^${major}\\.${minor}\\.`),
    );
  });

  it('is not above the Node of the image, which fits every package too', () => {
    const file = read('Dockerfile');
    const image = `${/^ARG NODE_IMAGE=node:(\d+)-/m.exec(file)?.[1]}.x`;
    expect(file.match(/^FROM (?!\$\{NODE_IMAGE\})/gm)).toBeNull();
    expect(intersects(image, engines)).toBe(true);
    expect(misfits((range) => intersects(image, range))).toEqual([]);
  });
});
