const ADVICE: Record<string, string> = {
  EADDRINUSE: 'stop what listens there, or set SIMULATOR_PORT to a free port.',
  EACCES: 'set SIMULATOR_PORT to a port that you may use, such as 4010.',
  EADDRNOTAVAIL: 'set SIMULATOR_HOST to an address of this machine, such as 127.0.0.1.',
  ENOTFOUND: 'set SIMULATOR_HOST to an address of this machine, such as 127.0.0.1.',
};

/** Says why the simulator could not start, and which setting to mend where one is to blame. */
export function startFault(error: Error & { code?: string }): string {
  const advice = ADVICE[error.code ?? ''];
  return advice ? `${error.message}; ${advice}` : error.message;
}
