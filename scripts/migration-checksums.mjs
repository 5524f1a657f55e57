// prisma/migrations/checksums.json has the SHA-256 of each released migration: databases have applied it, so it never
// changes again. npm run release -- --record-migrations adds the ones that are missing there.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const FOLDER = 'prisma/migrations';

const listAt = (root) => path.join(root, FOLDER, 'checksums.json');
const recordedAt = (root) => JSON.parse(readFileSync(listAt(root), 'utf8'));
const sqlOf = (name) => `${FOLDER}/${name}/migration.sql`;

function checksumAt(root, name) {
  const file = path.join(root, sqlOf(name));
  return existsSync(file) ? createHash('sha256').update(readFileSync(file)).digest('hex') : undefined;
}

/** One line for each released migration below `root` that was changed or removed. */
export function findChangedMigrations(root) {
  return Object.entries(recordedAt(root)).flatMap(([name, checksum]) =>
    checksumAt(root, name) === checksum
      ? []
      : [`${sqlOf(name)} was released, and is changed or gone. Restore it, and add a new migration.`],
  );
}

/** The names of the migrations that no release has yet. */
export function unreleasedMigrations(root) {
  const recorded = recordedAt(root);
  return readdirSync(path.join(root, FOLDER), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !Object.hasOwn(recorded, entry.name))
    .map(({ name }) => name)
    .sort();
}

/** Adds the migrations that no release has yet to the list. @returns their names */
export function recordMigrations(root) {
  const added = unreleasedMigrations(root);
  const checksums = { ...recordedAt(root), ...Object.fromEntries(added.map((name) => [name, checksumAt(root, name)])) };
  writeFileSync(listAt(root), `${JSON.stringify(checksums, null, 2)}\n`);
  return added;
}
