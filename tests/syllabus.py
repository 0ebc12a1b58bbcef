"""The lectures of the course, in order: each has a notebook, and all but the first a deck.

A new one is added here.
"""

SYLLABUS = """
    00_start_here
    01_attention
    02_transformer
    03_inside
    04_resformer
    05_svformer
    06_value_embeddings
    07_dynamic_value_attention
    08_bert_bypass
    09_thirteen_rows
    10_bank_of_values
    11a_write_a_kernel
    11b_decode_and_the_best_kernel
    12_scale_and_evidence
    13_what_came_next
""".split()
