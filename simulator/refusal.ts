/** A 4xx answer, thrown anywhere in a handler and sent as `{"message": …}`. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly headers: Record<string, string> = {},
  ) {
    super(message);
  }
}

/** 400: the request violates a rule of the platform's interface. */
export function invalid(message: string): Refusal {
  return new Refusal(400, message);
}

/** 404: the id is unknown. */
export function notFound(what: string): Refusal {
  return new Refusal(404, `${what} not found.`);
}
