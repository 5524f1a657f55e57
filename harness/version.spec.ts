import { readdirSync } from 'node:fs';
import path from 'node:path';
import { readProjectFile as read } from './deployment-files.js';

const ROOT = path.resolve(__dirname, '..');
const { version } = JSON.parse(read('package.json'));
const pages = ['docs', 'client', 'deploy'].flatMap((folder) =>
  readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(md|ya?ml)$/.test(file))
    .map((file) => `${folder}/${file}`),
);
/** Names of files and images of a release, such as notebridge-client-1.0.0.tgz. */
const NAMED = /\bnotebridge(?:-client)?[-:](\d+\.\d+\.\d+)/g;
const TAG = /newTag: "([^"]*)"/g;

describe('the version of package.json', () => {
  it('is that of the lockfile and the client', () => {
    const { packages, ...lockfile } = JSON.parse(read('package-lock.json'));
    const others = [lockfile.version, packages[''].version, JSON.parse(read('client/package.json')).version];
    expect(others).toEqual([version, version, version]);
  });

  it('is that of every page and manifest that names one', () => {
    const named = ['README.md', ...pages].flatMap((page) =>
      [NAMED, TAG].flatMap((pattern) => [...read(page).matchAll(pattern)].map(([, found]) => [page, found])),
    );
    expect(named.map(([page]) => page)).toEqual(
      expect.arrayContaining(['deploy/kubernetes/kustomization.yaml', 'docs/ehr.md']),
    );
    expect(named).toEqual(named.map(([page]) => [page, version]));
  });

  it('has a section in the changelog', () => {
    expect(read('CHANGELOG.md')).toContain(`\n## ${version} — 20`);
  });
});
