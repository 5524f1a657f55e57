import { mkdtempSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Start } from '../../harness/deployment-files.js';

type Settings = Readonly<Record<string, string | undefined>>;

/**
 * The settings with which a deployment file starts a process, with the stores and the platform of a test. Secrets are in
 * files if the deployment has them in files.
 *
 * @param values the settings of the test
 */
export function deployedSettings({ settings }: Start, values: Settings): Settings {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'notebridge-deployed-'));
  const own: Record<string, string | undefined> = { ...settings, PORT: '0', HOST: undefined };
  for (const name of Object.keys(settings).filter((setting) => setting.endsWith('_FILE'))) {
    const secret = name.replace(/_FILE$/, '');
    const value = values[secret];
    const file = path.join(folder, secret);
    if (value !== undefined) writeFileSync(file, `${value}\n`);
    own[name] = value === undefined ? undefined : file;
    own[secret] = undefined;
  }
  return own;
}
