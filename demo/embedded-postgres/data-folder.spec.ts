import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { dataFolderFault, makeDataFolder } from './data-folder.js';

describe('the data folder', () => {
  const root = mkdtempSync(path.join(tmpdir(), 'data-folder-'));
  afterAll(() => rmSync(root, { recursive: true }));

  it('is created with its parents, unless it exists', () => {
    const folder = path.join(root, 'a/b');
    makeDataFolder(folder);
    makeDataFolder(folder);
    expect(statSync(folder).isDirectory()).toBe(true);
  });

  it.each([
    ['itself', 'file'],
    ['above it', 'file/demo'],
  ])('is rejected with its name and DATA_DIR if a file is at its path: %s', (_, name) => {
    writeFileSync(path.join(root, 'file'), '');
    const folder = path.join(root, name);
    const sentence = `The data folder ${folder} cannot be used (a file has its name). Set DATA_DIR to a folder that this user may write to.`;
    expect(() => makeDataFolder(folder)).toThrow(sentence);
  });

  it.each(['EACCES', 'EPERM', 'EROFS'])(
    'is rejected if it belongs to another user or is on a read-only disk (%s)',
    (code) => {
      expect(dataFolderFault('/x', Object.assign(new Error(), { code }))).toMatch(/^The data folder \/x .*DATA_DIR/);
    },
  );
});
