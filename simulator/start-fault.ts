const ADVICE: Record<string, string> = {
  EADDRINUSE: 'Stop the program on this port, or set SIMULATOR_PORT to a free port.',
  EACCES: 'Set SIMULATOR_PORT to a port that you may use, such as 4010.',
  EADDRNOTAVAIL: 'Set SIMULATOR_HOST to an address of this machine, such as 127.0.0.1.',
  ENOTFOUND: 'Set SIMULATOR_HOST to an address of this machine, such as 127.0.0.1.',
};

/** Why the simulator could not start, and which setting to change, if any. */
export function startFault(error: Error & { code?: string }): string {
  const advice = ADVICE[error.code ?? ''];
  return advice ? `${error.message}. ${advice}` : error.message;
}
