/** An answer of 4xx, thrown from anywhere in a handler and sent as `{"message": …}`. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly headers: Record<string, string> = {},
  ) {
    super(message);
  }
}

/** 400: the request breaks a rule of the platform's interface. */
export function invalid(message: string): Refusal {
  return new Refusal(400, message);
}

/** 404: nothing is known by this id. */
export function notFound(what: string): Refusal {
  return new Refusal(404, `${what} not found.`);
}
