/**
 * A script of the console failed to load. Only a reload fixes that, because React and some browsers keep the failed load,
 * and after an upgrade the script no longer exists.
 */
export class ScriptMissing extends Error {
  constructor(cause: unknown) {
    super(
      'This part of the console could not be loaded, because the service is down or was upgraded. Reload the page.',
      { cause },
    );
    this.name = 'ScriptMissing';
  }
}

/** Loads a script that is not part of the first page. @throws {ScriptMissing} */
export async function script<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    throw new ScriptMissing(error);
  }
}
