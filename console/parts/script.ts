/**
 * A script of the console did not come. Only a reload mends that: React and some browsers keep a load that failed, and
 * after an upgrade the page asks for a script that is no more.
 */
export class ScriptMissing extends Error {
  constructor(cause: unknown) {
    super('This part of the console could not be loaded: the service is down, or was upgraded.', { cause });
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
