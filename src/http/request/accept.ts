/**
 * Chooses the media type that an Accept header prefers (RFC 9110 §12.5.1). The most specific range determines a type's
 * quality; among equals, the order of `types` decides.
 *
 * @param accept undefined or blank accepts any type
 * @returns undefined if no type is acceptable
 */
export function preferredType<T extends string>(accept: string | undefined, types: readonly T[]): T | undefined {
  const ranges = new Map((accept?.trim() || '*/*').split(',').map(readRange));
  const qualityOf = (type: string) =>
    ranges.get(type) ?? ranges.get(`${type.split('/')[0]}/*`) ?? ranges.get('*/*') ?? 0;
  const best = Math.max(...types.map(qualityOf));
  return best === 0 ? undefined : types.find((type) => qualityOf(type) === best);
}

function readRange(text: string): [type: string, quality: number] {
  const [type = '', ...parameters] = text
    .toLowerCase()
    .split(';')
    .map((part) => part.trim());
  const quality = Number(parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? 1);
  return [type, quality >= 0 && quality <= 1 ? quality : 0];
}
