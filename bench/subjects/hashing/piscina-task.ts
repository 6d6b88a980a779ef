/** The task of piscina.ts. */
import { hash, type Hashed, type Item } from "./work.ts";

export default function hashItem(item: Item): Hashed {
  return hash(item);
}
