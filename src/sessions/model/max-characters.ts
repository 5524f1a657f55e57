import { ValidateBy } from 'class-validator';

/**
 * A text of so many characters at most. Each code point counts, as the length of a text is usually told: class-validator's
 * MaxLength leaves out variation selectors, so that a text without end could pass.
 */
export function MaxCharacters(max: number): PropertyDecorator {
  const validate = (value: unknown) => typeof value === 'string' && charactersIn(value) <= max;
  const defaultMessage = () => `must hold at most ${max} characters`;
  return ValidateBy({ name: 'maxCharacters', validator: { validate, defaultMessage } });
}

/** Code points of a text. */
export function charactersIn(text: string): number {
  let count = 0;
  for (const _character of text) count += 1;
  return count;
}
