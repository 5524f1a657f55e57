/** Resolves when a method is called, with what that call returns. Call it before what makes the call. */
export function nextCall<T extends object>(object: T, method: keyof T & string): Promise<{ returned: unknown }> {
  const original = object[method] as (...args: unknown[]) => unknown;
  return new Promise((resolve) => {
    jest.spyOn(object, method as never).mockImplementation(function (this: T, ...args: unknown[]) {
      const returned = original.apply(this, args);
      resolve({ returned });
      return returned;
    } as never);
  });
}
