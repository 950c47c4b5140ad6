/* SPDX-License-Identifier: Apache-2.0 */
/* Text of any origin in XML. */
#ifndef XML_TEXT_H
#define XML_TEXT_H

#include <stdio.h>

/* Writes the text as what stands between tags or quotes. What is not UTF-8, or not allowed in XML, becomes U+FFFD. A
 * text that is wider than `most` letters is cut, with "…" at its end. */
void xml_text_put(FILE *out, const char *text, int most);

#endif
