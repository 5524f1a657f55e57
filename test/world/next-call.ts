/** Resolves when a method is called, with what that call returns. Call it before what makes the call. */
export function nextCall<T extends object>(object: T, method: keyof T & string): Promise<{ returned: unknown }> {
  const spy = jest.spyOn(object, method as never) as unknown as jest.SpyInstance<unknown, unknown[], T>;
  const before = spy.getMockImplementation();
  return new Promise((resolve) => {
    spy.mockImplementation(function (this: T, ...args: unknown[]) {
      const returned = before?.apply(this, args);
      resolve({ returned });
      return returned;
    });
  });
}
