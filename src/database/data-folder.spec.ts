import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { checkDataFolder, dataFolderFault, makeDataFolder } from './data-folder.js';

describe('the data folder', () => {
  const root = mkdtempSync(path.join(tmpdir(), 'data-folder-'));
  afterAll(() => rmSync(root, { recursive: true }));

  it('is made, with those above it, and may be there already', () => {
    const folder = path.join(root, 'a/b');
    makeDataFolder(folder);
    makeDataFolder(folder);
    expect(statSync(folder).isDirectory()).toBe(true);
  });

  it.each([
    ['itself', 'file'],
    ['above it', 'file/demo'],
  ])('is refused in a sentence that names it and DATA_DIR when a file stands there, %s', (_, name) => {
    writeFileSync(path.join(root, 'file'), '');
    const folder = path.join(root, name);
    const sentence = `The data folder ${folder} can not be used (a file stands in its way): set DATA_DIR to a folder that you may write to.`;
    expect(() => makeDataFolder(folder)).toThrow(sentence);
    expect(() => checkDataFolder(folder)).toThrow(sentence);
  });

  it('is not made by looking whether it could be', () => {
    checkDataFolder(path.join(root, 'c/d'));
    expect(existsSync(path.join(root, 'c'))).toBe(false);
  });

  it.each(['EACCES', 'EPERM', 'EROFS'])('of another user or on a disk that takes nothing (%s): likewise', (code) => {
    expect(dataFolderFault('/x', Object.assign(new Error(), { code }))).toMatch(/^The data folder \/x .*DATA_DIR/);
  });
});
