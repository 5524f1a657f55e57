import { type Program, type ProgramOptions, Programs } from '../../harness/program.js';

/** To be called once in a suite: the returned function starts programs, and whatever still runs dies with the suite. */
export function usePrograms(): (options: ProgramOptions) => Promise<Program> {
  const programs = new Programs();
  afterAll(() => programs.killAll());
  return (options) => programs.start(options);
}
