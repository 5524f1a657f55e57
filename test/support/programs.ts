import { type Program, type ProgramOptions, Programs } from '../../harness/program.js';

/** Call it once per suite: the returned function starts programs, which are killed at the end of the suite. */
export function usePrograms(): (options: ProgramOptions) => Promise<Program> {
  const programs = new Programs();
  afterAll(() => programs.killAll());
  return (options) => programs.start(options);
}
