/** The decorator of a parameter that documents the parameter's route, too. */
export function documenting(parameter: ParameterDecorator, ...route: MethodDecorator[]): ParameterDecorator {
  return (target, name, index) => {
    parameter(target, name, index);
    const descriptor = name === undefined ? undefined : Object.getOwnPropertyDescriptor(target, name);
    if (name === undefined || !descriptor) return;
    for (const decorate of route) decorate(target, name, descriptor);
  };
}
