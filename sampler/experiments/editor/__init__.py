"""The editor of MARS's learned proposal in plain PyTorch, the extra [gpu]. Written from the description in the paper of
MARS (Xie et al., ICLR 2021) and the sizes of the release; none of its code, which is CC BY-NC, was used.

features     a molecule as arrays: atoms, bonds, cuts
network      graph encoders and heads; a batch of molecules in, logits out
learning     the memory of improving edits, and updates on it
torch_editor both together: the `Editor` of `kernels.learned_fragments` that the lockstep runner holds

It stands here and not with the application's local models, because the lockstep runner of `sampler.experiments` needs
it, and `sampler` imports nothing of the application. PyTorch is imported when an editor is built, never before.
"""
